#include "compiler/schedule/threadgroup/threadgroup_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace fusion {
namespace {

DeviceModel Device(int work_group_size, int64_t local_bytes, int units) {
  DeviceModel device;
  device.kind = "opencl";
  device.work_group_size = work_group_size;
  device.parallel_units = units;
  device.memory = {{"local", local_bytes, 1e12, false}, {"global", 0, 1e11, true}};
  return device;
}

TEST(RankThreadgroupShapes, FitTheGroupAndItsMemory) {
  for (const int work_group_size : {32, 64, 128, 256}) {
    const auto shapes = RankThreadgroupShapes(1024, 1024, 1, 16, 1, Device(work_group_size, 48 << 10, 40));
    ASSERT_FALSE(shapes.empty());
    for (const ThreadgroupShape& shape : shapes) {
      EXPECT_EQ(shape.item_rows * shape.item_columns, work_group_size);
      EXPECT_LE(4 * 16 * (shape.item_rows * shape.rows + shape.item_columns * shape.columns), 24 << 10);
    }
    EXPECT_TRUE(std::is_sorted(shapes.begin(), shapes.end(), [](const ThreadgroupShape& a, const ThreadgroupShape& b) {
      return a.cycles < b.cycles;
    }));
  }
  EXPECT_TRUE(RankThreadgroupShapes(1024, 1024, 1, 16, 1, Device(128, 1 << 10, 40)).empty());
}

TEST(RankThreadgroupShapes, ManyResultsMakeLargeTilesAndFewMakeSmallOnes) {
  const DeviceModel device = Device(128, 48 << 10, 100);
  const auto results = [](const ThreadgroupShape& shape) { return shape.rows * shape.columns; };
  EXPECT_EQ(results(RankThreadgroupShapes(4096, 4096, 1, 16, 1, device)[0]), 64);
  EXPECT_LT(results(RankThreadgroupShapes(256, 256, 1, 16, 1, device)[0]), 16);
  // A batch fills the device as well as more results do.
  EXPECT_GT(results(RankThreadgroupShapes(256, 256, 64, 16, 1, device)[0]), 16);
}

// Where the device says what a unit keeps, more work-items may share a tile: they hide each other's waiting.
TEST(RankThreadgroupShapes, LargerGroupsWhereAUnitHasRoomForThem) {
  DeviceModel device = Device(64, 48 << 10, 100);
  const auto sizes = [&](int work_group_size) {
    std::set<int> sizes;
    for (const ThreadgroupShape& shape : RankThreadgroupShapes(128, 768, 1, 16, 2, device, {}, work_group_size)) {
      sizes.insert(shape.item_rows * shape.item_columns);
    }
    return sizes;
  };
  EXPECT_EQ(sizes(0), std::set<int>{64});
  device.unit_limits = {65536, 200 << 10, 1024, 2048, 32};
  EXPECT_GT(*sizes(0).rbegin(), 64);
  EXPECT_EQ(sizes(128), std::set<int>{128}) << "other tiles of the kernel have chosen";
  device.unit_limits.registers = 64 * 128;
  EXPECT_EQ(sizes(0), std::set<int>{64}) << "more would spill";
}

// A slice is waited for, however little is computed with it, so that few tiles are no faster when they are smaller.
TEST(RankThreadgroupShapes, WaitingForSlicesHasAPrice) {
  DeviceModel device = Device(64, 48 << 10, 100);
  const double without = RankThreadgroupShapes(32, 32, 1, 16, 2, device)[0].cycles;
  device.unit_limits = {65536, 200 << 10, 1024, 2048, 32};
  EXPECT_GT(RankThreadgroupShapes(32, 32, 1, 16, 2, device)[0].cycles, 2 * without);
}

}  // namespace
}  // namespace fusion
