#include "runtime/devices/launch_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace fusion {
namespace {

using ::testing::ElementsAre;

TEST(LaunchOrder, RepeatsAreLaunchedAndThoseInsideOfALaunchAreNot) {
  ManifestProgram program;
  program.launches.resize(5);
  program.repeats = {{1, 3, 2}, {4, 5, 100, true}};
  std::vector<std::pair<size_t, int64_t>> order;
  for (const LaunchedAt& at : LaunchesInOrder(program)) order.emplace_back(at.launch, at.iteration);
  using P = std::pair<size_t, int64_t>;
  EXPECT_THAT(order, ElementsAre(P(0, 0), P(1, 0), P(2, 0), P(1, 1), P(2, 1), P(3, 0), P(4, 0)));
}

TEST(LaunchOrder, BuffersMoveWithTheirRepeat) {
  ManifestProgram program;
  program.repeats = {{1, 3, 4}, {4, 5, 100, true}};
  program.buffers.resize(3);
  program.buffers[1].steps = BufferSteps{0, 3, -1, 4, 64};
  program.buffers[2].steps = BufferSteps{1, 0, 1, 2, 128};
  EXPECT_EQ(MovedBy(program, 0, 3), 0);
  EXPECT_EQ(MovedBy(program, 1, 0), 192);
  EXPECT_EQ(MovedBy(program, 1, 3), 0);
  EXPECT_EQ(MovedBy(program, 2, 5), 128);
  EXPECT_FALSE(MovesInLaunch(program, 0));
  EXPECT_FALSE(MovesInLaunch(program, 1));
  EXPECT_TRUE(MovesInLaunch(program, 2));
}

}  // namespace
}  // namespace fusion
