#include "proto/retry/retry_info.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "proto/error_details.pb.h"

namespace fusion {
namespace {

constexpr char kTypeUrl[] = "type.googleapis.com/google.rpc.RetryInfo";
constexpr absl::Duration kLongest = absl::Hours(24);

}  // namespace

absl::Status RetryAfter(absl::Status error, absl::Duration delay) {
  v1::RetryInfo info;
  const int64_t ns = absl::ToInt64Nanoseconds(std::clamp(delay, absl::ZeroDuration(), kLongest));
  info.mutable_retry_delay()->set_seconds(ns / 1000000000);
  info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(ns % 1000000000));
  error.SetPayload(kTypeUrl, absl::Cord(info.SerializeAsString()));
  return error;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& error) {
  const absl::optional<absl::Cord> payload = error.GetPayload(kTypeUrl);
  v1::RetryInfo info;
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return std::nullopt;
  const absl::Duration delay =
      absl::Seconds(info.retry_delay().seconds()) + absl::Nanoseconds(info.retry_delay().nanos());
  return std::clamp(delay, absl::ZeroDuration(), kLongest);
}

std::string ErrorDetailsOf(const absl::Status& error) {
  const absl::optional<absl::Cord> payload = error.GetPayload(kTypeUrl);
  if (!payload.has_value()) return "";
  v1::ErrorDetails details;
  details.set_code(static_cast<int>(error.code()));
  google::protobuf::Any& any = *details.add_details();
  any.set_type_url(kTypeUrl);
  any.set_value(std::string(*payload));
  return details.SerializeAsString();
}

void TakeErrorDetails(const std::string& bytes, absl::Status* error) {
  v1::ErrorDetails details;
  if (error->ok() || bytes.empty() || !details.ParseFromString(bytes)) return;
  for (const google::protobuf::Any& any : details.details()) {
    if (any.type_url() == kTypeUrl) error->SetPayload(kTypeUrl, absl::Cord(any.value()));
  }
}

}  // namespace fusion
