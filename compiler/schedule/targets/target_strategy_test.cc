#include "compiler/schedule/targets/target_strategy.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

DeviceModel Device(const char* kind, int work_group_size) {
  DeviceModel device;
  device.kind = kind;
  device.work_group_size = work_group_size;
  return device;
}

TEST(StrategyOf, FollowsTheDevice) {
  EXPECT_EQ(&StrategyOf(Device("cpu", 1)), &CpuStrategy());
  EXPECT_EQ(&StrategyOf(Device("opencl", 1)), &SingleItemStrategy());
  EXPECT_EQ(&StrategyOf(Device("opencl", 64)), &WorkGroupStrategy());
  EXPECT_EQ(&StrategyOf(Device("cuda", 128)), &WorkGroupStrategy());
}

// Products are tiles of one kind or the other, and what depends on the kind follows it.
TEST(Strategies, ProductsAgreeWithTheirTiles) {
  for (const TargetStrategy* target : {&CpuStrategy(), &SingleItemStrategy(), &WorkGroupStrategy()}) {
    SCOPED_TRACE(target->name);
    EXPECT_NE(target->threadgroup_tiles, target->k_blocking);
    EXPECT_EQ(target->threadgroup_tiles, target->split_k);
    EXPECT_EQ(target->threadgroup_tiles, target->tiles_before_tasks);
    EXPECT_GE(target->product_scratch_caches, 1);
    EXPECT_GE(target->left_for_operands, 1);
    EXPECT_GE(target->items_of_a_row, 1);
  }
}

TEST(Strategies, OnlyProcessorsRelyOnCaches) {
  EXPECT_TRUE(CpuStrategy().column_sums && CpuStrategy().prefetches && CpuStrategy().streaming_stores);
  for (const TargetStrategy* target : {&SingleItemStrategy(), &WorkGroupStrategy()}) {
    SCOPED_TRACE(target->name);
    EXPECT_FALSE(target->column_sums || target->prefetches || target->streaming_stores);
    EXPECT_EQ(target->product_scratch_caches, 1);
  }
}

}  // namespace
}  // namespace fusion
