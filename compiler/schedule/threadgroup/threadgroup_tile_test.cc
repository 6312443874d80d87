#include "compiler/schedule/threadgroup/threadgroup_tile.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fusion {
namespace {

DeviceModel Device(int group, int64_t local_bytes, int units) {
  DeviceModel device;
  device.kind = "opencl";
  device.task_lanes = group;
  device.parallel_units = units;
  device.memory = {{"local", local_bytes, 1e12, false}, {"global", 0, 1e11, true}};
  return device;
}

TEST(RankGroupShapes, FitTheGroupAndItsMemory) {
  for (const int group : {32, 64, 128, 256}) {
    const auto shapes = RankGroupShapes(1024, 1024, 1, 16, 1, Device(group, 48 << 10, 40));
    ASSERT_FALSE(shapes.empty());
    for (const GroupShape& shape : shapes) {
      EXPECT_EQ(shape.item_rows * shape.item_columns, group);
      EXPECT_LE(4 * 16 * (shape.item_rows * shape.rows + shape.item_columns * shape.columns), 24 << 10);
    }
    EXPECT_TRUE(std::is_sorted(shapes.begin(), shapes.end(),
                               [](const GroupShape& a, const GroupShape& b) { return a.cycles < b.cycles; }));
  }
  EXPECT_TRUE(RankGroupShapes(1024, 1024, 1, 16, 1, Device(128, 1 << 10, 40)).empty());
}

TEST(RankGroupShapes, ManyResultsMakeLargeTilesAndFewMakeSmallOnes) {
  const DeviceModel device = Device(128, 48 << 10, 100);
  const auto results = [](const GroupShape& shape) { return shape.rows * shape.columns; };
  EXPECT_EQ(results(RankGroupShapes(4096, 4096, 1, 16, 1, device)[0]), 64);
  EXPECT_LT(results(RankGroupShapes(256, 256, 1, 16, 1, device)[0]), 16);
  // A batch fills the device as well as more results do.
  EXPECT_GT(results(RankGroupShapes(256, 256, 64, 16, 1, device)[0]), 16);
}

}  // namespace
}  // namespace fusion
