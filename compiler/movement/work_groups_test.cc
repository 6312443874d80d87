#include "compiler/movement/work_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/movement/testing/look_kernel.h"
#include "compiler/movement/testing/sample_kernel.h"

namespace fusion::movement {
namespace {

using ::testing::ElementsAre;

Kernel WithTiles(int64_t scratch_bytes) {
  Kernel kernel = testing::Sample();
  kernel.phases[0].grid = {{0, 100}};
  kernel.phases[0].steps[0].strategy = RegisterTile{};
  kernel.scratch_bytes = scratch_bytes;
  if (scratch_bytes > 0) kernel.buffers[kernel.phases[0].steps[0].stores[0].buffer].scope = Scope::kBlock;
  return kernel;
}

TEST(TaskPerItem, OnlyForRegisterTilesWithoutScratch) {
  const Kernel tiles = WithTiles(0), scratch = WithTiles(64), map = testing::Sample();
  EXPECT_TRUE(TaskPerItem(tiles, tiles.phases[0], 32));
  EXPECT_FALSE(TaskPerItem(tiles, tiles.phases[0], 1)) << "the only work-item is the group";
  EXPECT_FALSE(TaskPerItem(scratch, scratch.phases[0], 32)) << "scratch belongs to a group";
  EXPECT_FALSE(TaskPerItem(map, map.phases[0], 32));
  Kernel of_another_phase = tiles;
  of_another_phase.scratch_bytes = 64;
  EXPECT_TRUE(TaskPerItem(of_another_phase, of_another_phase.phases[0], 32)) << "it uses no scratch itself";
}

TEST(WorkGroups, HoldAsManyTasksAsWorkItemsOrOne) {
  const Kernel tiles = WithTiles(0), scratch = WithTiles(64);
  EXPECT_EQ(WorkGroups(tiles, tiles.phases[0], 32), 4) << "the last group has tasks for four of its work-items";
  EXPECT_EQ(WorkGroups(scratch, scratch.phases[0], 32), 100);
}

TEST(LaunchedWorkGroups, PhasesBesideEachOtherShareALaunch) {
  Kernel kernel = WithTiles(0);
  kernel.phases.resize(3, kernel.phases[0]);
  kernel.phases[1].grid = {{0, 1000}};
  kernel.phases[1].beside = true;
  EXPECT_THAT(LaunchedWorkGroups(kernel, 32), ElementsAre(36, 4));
  const std::vector<PhaseRange> launches = LaunchesOf(kernel);
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_EQ(launches[0].end, 2u);
  EXPECT_EQ(launches[1].first, 2u);
  kernel.persistent = true;
  EXPECT_THAT(LaunchedWorkGroups(kernel, 32), ElementsAre(32));
}

TEST(LaunchedWorkGroups, APersistentKernelIsOneLaunchOfItsLargestPhase) {
  Kernel kernel = WithTiles(0);
  kernel.phases.push_back(kernel.phases[0]);
  kernel.phases[1].grid = {{0, 1000}};
  EXPECT_THAT(LaunchedWorkGroups(kernel, 32), ElementsAre(4, 32));
  kernel.persistent = true;
  EXPECT_THAT(LaunchedWorkGroups(kernel, 32), ElementsAre(32));
}

TEST(WorkItems, AreAsManyAsMultiplyAFragment) {
  Kernel kernel = testing::Sample();
  EXPECT_EQ(WorkItems(kernel, 64), 64);
  ThreadgroupTile tile;
  tile.product.work_items = 128;
  kernel.phases[0].steps[0].strategy = tile;
  EXPECT_EQ(WorkItems(kernel, 64), 128);
  EXPECT_EQ(WorkItems(kernel, 256), 256);
}

TEST(WrittenBuffers, AlsoThoseOfSharedMemoryCopies) {
  Kernel kernel = testing::Sample();
  ThreadgroupTile tile;
  tile.shared_copies = {kernel.phases[0].steps[0]};
  tile.shared_copies[0].stores[0].buffer = 5;
  kernel.phases[0].steps[0].strategy = tile;
  EXPECT_THAT(WrittenBuffers(kernel.phases[0]), ElementsAre(1, 5));
}

TEST(WrittenBuffers, AlsoThatOfALook) {
  EXPECT_THAT(WrittenBuffers(testing::LookingSums().phases[0]), ElementsAre(1, 2, 3));
}

TEST(PhaseLoopAt, IsTheLoopThatBeginsThere) {
  Kernel kernel = testing::Sample();
  kernel.phase_loops = {{1, 3, 7}, {3, 4, 9}};
  EXPECT_EQ(PhaseLoopAt(kernel, 0), nullptr);
  ASSERT_NE(PhaseLoopAt(kernel, 1), nullptr);
  EXPECT_EQ(PhaseLoopAt(kernel, 1)->trips, 7);
  EXPECT_EQ(PhaseLoopAt(kernel, 2), nullptr);
  EXPECT_EQ(kernel.TripsOf(2), 7);
  EXPECT_EQ(kernel.TripsOf(3), 9);
  EXPECT_EQ(kernel.TripsOf(4), 1);
}

}  // namespace
}  // namespace fusion::movement
