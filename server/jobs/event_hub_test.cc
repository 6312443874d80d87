#include "server/jobs/event_hub.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(EventHub, WakesTheWatchersOfTheJobOnly) {
  EventHub hub;
  int first = 0, second = 0, other = 0;
  hub.Subscribe("job", [&] { ++first; });
  hub.Subscribe("job", [&] { ++second; });
  hub.Subscribe("another", [&] { ++other; });
  hub.Notify("job");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  EXPECT_EQ(other, 0);
  hub.Notify("nobody's");
  EXPECT_EQ(first + second + other, 2);
}

TEST(EventHub, AnUnsubscribedWatcherIsNotWoken) {
  EventHub hub;
  int woken = 0;
  const int64_t token = hub.Subscribe("job", [&] { ++woken; });
  const int64_t next = hub.Subscribe("job", [&] { woken += 10; });
  EXPECT_NE(token, next);
  hub.Unsubscribe(token);
  hub.Notify("job");
  EXPECT_EQ(woken, 10);
  hub.Unsubscribe(token);  // again: nothing happens
}

TEST(EventHub, ClosingWakesEverybody) {
  EventHub hub;
  int woken = 0;
  hub.Subscribe("job", [&] { ++woken; });
  hub.Subscribe("another", [&] { ++woken; });
  EXPECT_FALSE(hub.closed());
  hub.Close();
  EXPECT_TRUE(hub.closed());
  EXPECT_EQ(woken, 2);
}

}  // namespace
}  // namespace fusion
