#include "compiler/schedule/stitch/task_size.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace fusion {
namespace {

DeviceModel Model(int units) {
  DeviceModel device;
  device.parallel_units = units;
  device.memory = {{"L1", 48 << 10, 2e11, false}, {"L2", 2 << 20, 7e10, false}, {"L3", 32 << 20, 3e10, true}};
  return device;
}

TEST(TaskSize, FollowsUnitsAndVectorsAlone) {
  DeviceModel device = Model(4);
  const double least = MinTaskCost(device);
  const int64_t wanted = WantedTasks(device);
  device.fma_f32_flops_per_s *= 3;
  device.launch_s *= 5;
  for (MemoryLevel& level : device.memory) level.bandwidth_bytes_per_s /= 2;
  EXPECT_EQ(MinTaskCost(device), least) << "a measured rate may not change what is built";
  EXPECT_EQ(WantedTasks(device), wanted);
  device.vector_bytes /= 2;
  EXPECT_EQ(MinTaskCost(device), least / 2) << "a task has as many vectors, whatever their width";
}

TEST(TaskSize, LimitsAreInOrder) {
  for (const int units : {0, 1, 2, 64}) {
    const DeviceModel device = Model(units);
    EXPECT_GE(Units(device), 1) << units;
    EXPECT_GE(LikelyUnits(device), 2) << units << " units: a bundle may get more threads than it was planned for";
    EXPECT_GE(WantedTasks(device), Units(device)) << units;
    EXPECT_GT(MaxTasks(device), WantedTasks(device)) << units;
    EXPECT_GT(WorthSharing(device), MinTaskCost(device)) << units;
  }
}

TEST(TaskSize, CachesOfAModelThatNamesNone) {
  EXPECT_EQ(NearestCacheBytes(Model(1)), 48 << 10);
  EXPECT_EQ(PrivateCacheBytes(Model(1)), 2 << 20) << "the third level is shared";
  DeviceModel unknown;
  EXPECT_GT(NearestCacheBytes(unknown), 0);
  EXPECT_GT(PrivateCacheBytes(unknown), NearestCacheBytes(unknown));
}

}  // namespace
}  // namespace fusion
