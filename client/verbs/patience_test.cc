#include "client/verbs/patience.h"

#include <gtest/gtest.h>

#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

const absl::Status kBusy = RetryAfter(absl::ResourceExhaustedError("busy"), absl::Milliseconds(10));

TEST(Patience, TriesUntilItSucceeds) {
  Progress progress("none");
  int attempts = 0;
  EXPECT_TRUE(TryPatiently(absl::Minutes(1), progress, [&](RetryPolicy&) {
                return ++attempts < 4 ? kBusy : absl::OkStatus();
              }).ok());
  EXPECT_EQ(attempts, 4);
}

TEST(Patience, AnErrorThatWouldComeAgainIsFinal) {
  Progress progress("none");
  int attempts = 0;
  const absl::Status failed = TryPatiently(absl::Minutes(1), progress, [&](RetryPolicy&) {
    ++attempts;
    return absl::InvalidArgumentError("no");
  });
  EXPECT_EQ(failed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(attempts, 1);
}

TEST(Patience, EndsWithTheErrorUnlessTheCallGetsSomewhere) {
  Progress progress("none");
  EXPECT_EQ(TryPatiently(absl::Milliseconds(50), progress, [](RetryPolicy&) { return kBusy; }), kBusy);
  int pieces = 0;
  EXPECT_TRUE(TryPatiently(absl::Milliseconds(15), progress, [&](RetryPolicy& policy) {
                policy.Succeeded();
                return ++pieces < 20 ? kBusy : absl::OkStatus();
              }).ok());
}

}  // namespace
}  // namespace fusion
