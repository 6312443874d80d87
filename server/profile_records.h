// Records of the profile database on the wire, in both directions. Records of another server are checked here.
#ifndef FUSION_SERVER_PROFILE_RECORDS_H_
#define FUSION_SERVER_PROFILE_RECORDS_H_

#include "absl/status/statusor.h"
#include "db/stores/store.h"
#include "proto/profile.pb.h"

namespace fusion {

v1::Measurement ToProto(const MeasurementRow& row);
v1::ProfiledDevice ToProto(const DeviceRow& row);
v1::ProfiledComparison ToProto(const PlanComparisonRow& row);
v1::ProfiledPlan ToProto(const PlanRow& row);

// The rows of another server's records, with the source "imported/SOURCE". Fail with INVALID_ARGUMENT and what names
// the record where it is malformed: a key that is none, a figure that no measurement has, a text of more than 4,096
// bytes.
absl::StatusOr<MeasurementRow> ImportedRow(const v1::Measurement& record);
absl::StatusOr<PlanComparisonRow> ImportedRow(const v1::ProfiledComparison& record);
absl::StatusOr<PlanRow> ImportedRow(const v1::ProfiledPlan& record);

}  // namespace fusion

#endif  // FUSION_SERVER_PROFILE_RECORDS_H_
