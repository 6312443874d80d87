#include "compiler/schedule/threadgroup/threadgroup_shape.h"

#include <gtest/gtest.h>

#include <algorithm>

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

}  // namespace
}  // namespace fusion
