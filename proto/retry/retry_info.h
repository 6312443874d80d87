// A refusal that says when to try again. The delay is a payload of the absl::Status, and google.rpc.Status bytes on the
// wire (proto/error_details.proto).
#ifndef FUSION_PROTO_RETRY_RETRY_INFO_H_
#define FUSION_PROTO_RETRY_RETRY_INFO_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace fusion {

// The error, and that the call may be made again after `delay`.
absl::Status RetryAfter(absl::Status error, absl::Duration delay);
// The delay that the error names, or nothing.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& error);

// The bytes for "grpc-status-details-bin"; empty if the error says nothing beside its code and words.
std::string ErrorDetailsOf(const absl::Status& error);
// Adds to the error what these bytes say. Bytes that do not parse say nothing.
void TakeErrorDetails(const std::string& bytes, absl::Status* error);

}  // namespace fusion

#endif  // FUSION_PROTO_RETRY_RETRY_INFO_H_
