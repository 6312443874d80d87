#include "server/stream_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace fusion {
namespace {

TEST(StreamPlaces, AreLimitedAndSlowStreamsLoseTheirs) {
  std::atomic<int64_t> now_s{1000};
  StreamPlaces places(2, absl::Minutes(5), [&] { return absl::FromUnixSeconds(now_s); });
  std::vector<std::atomic<int>> cancelled(2);
  auto slow = places.Take([&] { ++cancelled[0]; }).value();
  auto fast = places.Take([&] { ++cancelled[1]; }).value();
  EXPECT_EQ(places.Take([] {}).status().code(), absl::StatusCode::kResourceExhausted);
  now_s += 200;
  fast->Progress();
  now_s += 200;
  places.CancelSlow();
  EXPECT_GE(cancelled[0], 1);
  EXPECT_EQ(cancelled[1], 0);
  slow.reset();
  EXPECT_TRUE(places.Take([] {}).ok()) << "its place is free";
}

}  // namespace
}  // namespace fusion
