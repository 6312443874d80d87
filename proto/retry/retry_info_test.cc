#include "proto/retry/retry_info.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(RetryInfo, CrossesTheWire) {
  const absl::Status refused = RetryAfter(absl::ResourceExhaustedError("full"), absl::Milliseconds(2500));
  EXPECT_EQ(RetryDelayOf(refused), absl::Milliseconds(2500));
  absl::Status received = absl::ResourceExhaustedError("full");
  TakeErrorDetails(ErrorDetailsOf(refused), &received);
  EXPECT_EQ(RetryDelayOf(received), absl::Milliseconds(2500));
}

TEST(RetryInfo, HasTheBytesOfGoogleRpc) {
  const std::string bytes = ErrorDetailsOf(RetryAfter(absl::ResourceExhaustedError("full"), absl::Seconds(5)));
  // google.rpc.Status{code: 8, details: [Any{type_url, value: RetryInfo{retry_delay: {seconds: 5}}}]}
  const std::string url = "type.googleapis.com/google.rpc.RetryInfo";
  const std::string info("\x0a\x02\x08\x05", 4);
  const std::string any = "\x0a" + std::string(1, static_cast<char>(url.size())) + url + "\x12\x04" + info;
  EXPECT_EQ(bytes, "\x08\x08\x1a" + std::string(1, static_cast<char>(any.size())) + any);
}

TEST(RetryInfo, AnErrorWithoutItSaysNothing) {
  EXPECT_EQ(RetryDelayOf(absl::ResourceExhaustedError("full")), std::nullopt);
  EXPECT_EQ(ErrorDetailsOf(absl::InternalError("")), "");
  absl::Status error = absl::ResourceExhaustedError("full");
  for (const char* bytes : {"", "garbage", "\xff\xff"}) TakeErrorDetails(bytes, &error);
  EXPECT_EQ(RetryDelayOf(error), std::nullopt);
}

TEST(RetryInfo, ADelayIsBounded) {
  EXPECT_EQ(RetryDelayOf(RetryAfter(absl::ResourceExhaustedError(""), -absl::Seconds(1))), absl::ZeroDuration());
  EXPECT_EQ(RetryDelayOf(RetryAfter(absl::ResourceExhaustedError(""), absl::InfiniteDuration())), absl::Hours(24));
}

}  // namespace
}  // namespace fusion
