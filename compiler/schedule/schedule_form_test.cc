#include "compiler/schedule/schedule_form.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Schedule;

// A product, followed by a softmax over the rows without its maximum.
ScheduledBlock ProductAndRows(int64_t columns) {
  return Schedule(absl::StrFormat(R"(te p(%%0: f32[128, 256], %%1: f32[256, %d] const) {
  %%2[i0<128, i1<%d]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%1[i2, i1])
  %%3[i3<128]: f32 = sum.f32(i4<%d) %%2[i3, i4]
  %%4[i5<128, i6<%d]: f32 = div(%%2[i5, i6], %%3[i5])
  return %%4
})",
                                  columns, columns, columns, columns));
}

TEST(ScheduleForm, ReductionOverEverythingIsNotStitched) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})");
  EXPECT_GT(block.kernel.phases.size(), 1u);
  EXPECT_FALSE(block.reason.empty());
  ASSERT_EQ(block.kernel.phases.size(), 2u);
  EXPECT_EQ(block.kernel.num_args(), 3);  // the sum is handed over at device scope
}

TEST(ScheduleForm, LargeProductIsAPhaseWithATile) {
  const ScheduledBlock block = ProductAndRows(131072);
  EXPECT_GT(block.kernel.phases.size(), 1u);
  EXPECT_EQ(block.kernel.phases.at(0).steps.back().strategy, movement::Strategy::kTile)
      << movement::Print(block.kernel);
  // The stages after the product share one grid.
  ASSERT_EQ(block.kernel.phases.size(), 2u) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.phases[1].tasks(), 128);
  EXPECT_EQ(block.kernel.num_args(), 4);  // the product is at device scope, the sums are not
}

TEST(ScheduleForm, AnOutputNobodyWantsHasAHomeToo) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[64, 32]) {
  %1, %2[i0<64]: f32, f32 = reduce(i1<32)(0.0, 0.0) -> (add(acc0, %0[i0, i1]), max(acc1, %0[i0, i1]))
  return %1
})");
  EXPECT_EQ(block.kernel.num_args(), 3);
}

TEST(ScheduleForm, UnusedConstantIsReplacedByItsPackedCopy) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[16, 32], %1: f32[32, 40] const) {
  %2[i2<16, i3<40]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  return %2
})");
  ASSERT_EQ(block.kernel.packs.size(), 1u) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.num_args(), 3) << movement::Print(block.kernel);
  EXPECT_EQ(block.kernel.phases.at(0).steps.back().strategy, movement::Strategy::kTile);
}

}  // namespace
}  // namespace fusion
