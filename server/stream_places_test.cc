#include "server/stream_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "proto/retry/retry_info.h"

namespace fusion {
namespace {

TEST(StreamPlaces, AreLimitedAndSlowStreamsLoseTheirs) {
  std::atomic<int64_t> now_s{1000};
  StreamPlaces places(2, 2, absl::Minutes(5), [&] { return absl::FromUnixSeconds(now_s); });
  std::vector<std::atomic<int>> cancelled(2);
  auto slow = places.Take("me", [&] { ++cancelled[0]; }).value();
  auto fast = places.Take("me", [&] { ++cancelled[1]; }).value();
  EXPECT_EQ(places.Take("me", [] {}).status().code(), absl::StatusCode::kResourceExhausted);
  now_s += 200;
  fast->Progress();
  now_s += 200;
  places.CancelSlow();
  EXPECT_GE(cancelled[0], 1);
  EXPECT_EQ(cancelled[1], 0);
  slow.reset();
  EXPECT_TRUE(places.Take("me", [] {}).ok()) << "its place is free";
}

TEST(StreamPlaces, NobodyTakesThePlacesOfAll) {
  StreamPlaces places(3, 2, absl::Minutes(5), [] { return absl::UnixEpoch(); });
  auto first = places.Take("a", [] {}).value();
  auto second = places.Take("a", [] {}).value();
  const absl::Status refused = places.Take("a", [] {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.message()), ::testing::HasSubstr("caller 'a' has 2 streams open"));
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(1));
  auto of_another = places.Take("b", [] {});
  EXPECT_TRUE(of_another.ok());
  EXPECT_FALSE(places.Take("c", [] {}).ok()) << "all are taken";
  first.reset();
  EXPECT_TRUE(places.Take("a", [] {}).ok());
}

}  // namespace
}  // namespace fusion
