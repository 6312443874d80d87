#include "client/cli/exit_codes.h"

#include <cstdio>

#include "absl/strings/cord.h"

namespace fusion {
namespace {

constexpr char kUsagePayload[] = "fusion/usage";

void Print(const absl::Status& status) {
  std::fprintf(stderr, "fusionctl: %s\n", std::string(status.message()).c_str());
}

}  // namespace

absl::Status UsageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsagePayload, absl::Cord());
  return status;
}

ExitCode ExitCodeOf(const absl::Status& status) {
  if (status.GetPayload(kUsagePayload).has_value()) return kExitUsage;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kDataLoss:
      return kExitInvalidModel;
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kExitAuth;
    case absl::StatusCode::kUnavailable:
      return kExitUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitTimeout;
    case absl::StatusCode::kFailedPrecondition:
      return kExitNoWorker;
    case absl::StatusCode::kResourceExhausted:
      return kExitQuota;
    default:
      return kExitFailed;
  }
}

int Fail(const absl::Status& status) {
  Print(status);
  return ExitCodeOf(status);
}

int FailLocal(const absl::Status& status) {
  Print(status);
  const ExitCode code = ExitCodeOf(status);
  if (code == kExitNoWorker) return kExitInvalidModel;
  if (code == kExitQuota || code == kExitAuth) return kExitFailed;
  return code;
}

}  // namespace fusion
