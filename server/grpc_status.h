// Converts absl::Status to grpc::Status, with the delay after which to try again. Cuts messages that gRPC would drop
// because of their length.
#ifndef FUSION_SERVER_GRPC_STATUS_H_
#define FUSION_SERVER_GRPC_STATUS_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "proto/retry/retry_info.h"
#include "server/jobs/job_messages.h"

namespace fusion {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), CutMessage(status.message()),
                      ErrorDetailsOf(status));
}

}  // namespace fusion

#endif  // FUSION_SERVER_GRPC_STATUS_H_
