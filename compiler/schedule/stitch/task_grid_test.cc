#include "compiler/schedule/stitch/task_grid.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Schedule;

// A product, followed by a softmax over the rows without its maximum.
ScheduledFusionBlock ProductAndRows(int64_t columns) {
  return Schedule(absl::StrFormat(R"(te p(%%0: f32[128, 256], %%1: f32[256, %d] const) {
  %%2[i0<128, i1<%d]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%1[i2, i1])
  %%3[i3<128]: f32 = sum.f32(i4<%d) %%2[i3, i4]
  %%4[i5<128, i6<%d]: f32 = div(%%2[i5, i6], %%3[i5])
  return %%4
})",
                                  columns, columns, columns, columns));
}

// A mask that other kernels read too, and the stage that adds it: tasks take columns, but whole vectors of them.
TEST(TaskGrid, ColumnsAreVectors) {
  const ScheduledFusionBlock block = Schedule(R"(te p(%0: f32[1024], %1: f32[12, 1024, 1024]) {
  %2[i0<1024]: f32 = exp(%0[i0])
  %3[i1<12, i2<1024, i3<1024]: f32 = add(%1[i1, i2, i3], %2[i3])
  return %2, %3
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  for (const movement::Step& step : block.kernel.phases.at(0).steps) {
    EXPECT_TRUE(step.Is<movement::VectorMap>()) << movement::Print(block.kernel);
  }
}

// The columns of two parts that stand side by side, and their means. Tiles that a part's end cut would be computed
// element by element.
TEST(TaskGrid, TilesOfColumnsEndWherePartsDo) {
  const auto tiles = [](int columns, int first) {
    const ScheduledFusionBlock block = Schedule(absl::StrFormat(R"(te p(%%0: f32[3136, %1$d], %%1: f32[3136, %1$d]) {
  %%2[i0<3136, i1<%1$d]: f32 = if i1 < %2$d then %%0[i0, i1] else exp(%%1[i0, i1 - %2$d])
  %%3[i2<%1$d]: f32 = sum.f32(i3<3136) %%2[i3, i2]
  return %%2, %%3
})",
                                                                columns, first));
    EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
    for (const movement::Phase& phase : block.kernel.phases) {
      for (const movement::Step& step : phase.steps) {
        EXPECT_TRUE(step.reduction || step.Is<movement::VectorMap>()) << movement::Print(block.kernel);
      }
    }
    return block.kernel.phases.at(0).tasks();
  };
  EXPECT_EQ(tiles(96, 32), 3) << "32 columns each";
  EXPECT_EQ(tiles(48, 24), 2) << "24 columns each";
}

// Tasks whose rows read the same keys share them; the scores of a tile of rows stay in the core's own cache.
TEST(TaskGrid, AttentionOfManyKeysIsOneTask) {
  const ScheduledFusionBlock block =
      Schedule(R"(te p(%0: f32[12, 1024, 64], %1: f32[12, 1024, 64], %2: f32[12, 1024, 64]) {
  %3[i0<12, i1<1024, i2<1024]: f32 = sum.f32(i3<64) mul(%0[i0, i1, i3], %1[i0, i2, i3])
  %4[i4<12, i5<1024]: f32 = max.f32(i6<1024) %3[i4, i5, i6]
  %5[i7<12, i8<1024, i9<1024]: f32 = exp(sub(%3[i7, i8, i9], %4[i7, i8]))
  %6[i10<12, i11<1024, i12<64]: f32 = sum.f32(i13<1024) mul(%5[i10, i11, i13], %2[i10, i13, i12])
  return %6
})");
  ASSERT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  const movement::Phase& phase = block.kernel.phases.at(0);
  ASSERT_EQ(phase.grid.size(), 2u);
  EXPECT_EQ(phase.grid[0].extent, 12);
  EXPECT_GE(phase.grid[1].extent, 4);
  EXPECT_LE(phase.grid[1].extent, 32);
  EXPECT_LE(block.kernel.scratch_bytes, 1 << 20);
}

// A row is looked up by column: each task would compute the indices of all columns, so it takes many rows.
TEST(TaskGrid, WhatATaskComputesForAllRowsIsSharedByMany) {
  const ScheduledFusionBlock block = Schedule(R"(te p(%0: f32[512, 512], %1: i64[512], %2: i64[512]) {
  %3[i0<512]: i64 = min(max(%1[i0], 0:i64), 511:i64)
  %4[i1<512]: i64 = min(max(%2[i1], 0:i64), 511:i64)
  %5[i2<512, i3<512]: f32 = %0[%3[i2]{0..511}, %4[i3]{0..511}]
  return %5
})");
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  EXPECT_GE(block.kernel.phases.at(0).tasks(), 2);
  EXPECT_LE(block.kernel.phases.at(0).tasks(), 64);
}

TEST(TaskGrid, ProductTilesInsideATask) {
  const ScheduledFusionBlock block = ProductAndRows(512);
  EXPECT_EQ(block.kernel.phases.size(), 1u) << block.reason;
  ASSERT_EQ(block.kernel.phases.size(), 1u);
  const movement::Phase& phase = block.kernel.phases.at(0);
  EXPECT_TRUE(phase.steps[0].Is<movement::RegisterTile>()) << movement::Print(block.kernel);
  EXPECT_GE(phase.tasks(), 2);   // enough for one core
  EXPECT_LE(phase.tasks(), 16);  // each reads the weights again
  EXPECT_EQ(block.kernel.num_args(), 3);
}

// On a device of work-groups each further phase is a launch, so that fewer tasks than units are stitched if each is
// short, and not if each takes as long as a launch.
TEST(TaskGrid, FewShortTasksAreBetterThanLaunches) {
  const auto phases = [](int64_t columns) {
    return Schedule(absl::StrFormat(R"(te p(%%0: f32[32, %1$d]) {
  %%1[i0<32]: f32 = sum.f32(i1<%1$d) %%0[i0, i1]
  %%2[i2<32, i3<%1$d]: f32 = div(%%0[i2, i3], %%1[i2])
  return %%2
})",
                                    columns),
                    {}, testing::GroupDevice())
        .kernel.phases.size();
  };
  ASSERT_GT(testing::GroupDevice().parallel_units, 32);
  EXPECT_EQ(phases(768), 1u);
  EXPECT_GT(phases(65536), 1u);
}

}  // namespace
}  // namespace fusion
