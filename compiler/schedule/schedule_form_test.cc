#include "compiler/schedule/schedule_form.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::GroupDevice;
using testing::OrFail;
using testing::ParseTe;
using testing::Schedule;
using testing::Stages;

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

TEST(ScheduleForm, ReductionOverEverythingIsNotStitched) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})");
  EXPECT_GT(scheduled.kernel.phases.size(), 1u);
  EXPECT_FALSE(scheduled.reason.empty());
  ASSERT_EQ(scheduled.kernel.phases.size(), 2u);
  EXPECT_EQ(scheduled.kernel.num_args(), 3);  // the sum is handed over at device scope
}

TEST(ScheduleForm, LargeProductIsAPhaseWithATile) {
  const ScheduledFusionBlock scheduled = ProductAndRows(131072);
  EXPECT_GT(scheduled.kernel.phases.size(), 1u);
  EXPECT_TRUE(scheduled.kernel.phases.at(0).steps.back().Is<movement::RegisterTile>())
      << movement::Print(scheduled.kernel);
  // The stages after the product share one grid.
  ASSERT_EQ(scheduled.kernel.phases.size(), 2u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(scheduled.kernel.phases[1].tasks(), 128);
  EXPECT_EQ(scheduled.kernel.num_args(), 4);  // the product is at device scope, the sums are not
}

TEST(ScheduleForm, AnOutputNobodyWantsHasAHomeToo) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 32]) {
  %1, %2[i0<64]: f32, f32 = reduce(i1<32)(0.0, 0.0) -> (add(acc0, %0[i0, i1]), max(acc1, %0[i0, i1]))
  return %1
})");
  EXPECT_EQ(scheduled.kernel.num_args(), 3);
}

TEST(ScheduleForm, UnusedConstantIsReplacedByItsPackedCopy) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[16, 32], %1: f32[32, 40] const) {
  %2[i2<16, i3<40]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  return %2
})");
  ASSERT_EQ(scheduled.kernel.packs.size(), 1u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(scheduled.kernel.num_args(), 3) << movement::Print(scheduled.kernel);
  EXPECT_TRUE(scheduled.kernel.phases.at(0).steps.back().Is<movement::RegisterTile>());
}

constexpr char kSumOfEverything[] = R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})";

// Without products the kernel falls back to phases and says why; with products in tasks there is nothing to fall back
// to, since the phases are a form of their own.
TEST(ScheduleForm, ARefusalToStitchIsAReasonOrTheAnswer) {
  const te::Program program = Stages(kSumOfEverything);
  ChoiceLog choices;
  const ScheduledFusionBlock phases = OrFail(ScheduleForm(program, {}, Device(), {InTasks::kNoProducts}, &choices));
  EXPECT_GT(phases.kernel.phases.size(), 1u);
  const absl::Status refused = ScheduleForm(program, {}, Device(), {InTasks::kProducts}, &choices).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(phases.reason.empty());
}

TEST(ScheduleForm, AFusionBlockThatComputesNothingIsRefused) {
  ChoiceLog choices;
  const te::Program program = ParseTe("te p(%0: f32[4]) {\n  return %0\n}");
  EXPECT_EQ(ScheduleForm(program, {}, Device(), {InTasks::kNoProducts}, &choices).status().code(),
            absl::StatusCode::kInternal);
}

// Two parts that hand nothing to each other, of which neither has enough tasks for the device.
TEST(ScheduleForm, PartsBesideEachOtherAreSinglePhases) {
  const te::Program program = Stages(R"(te p(%0: f32[20, 4096], %1: f32[30, 4096]) {
  %2[i0<20]: f32 = sum.f32(i1<4096) %0[i0, i1]
  %3[i2<20, i3<4096]: f32 = div(%0[i2, i3], %2[i2])
  %4[i4<30]: f32 = max.f32(i5<4096) %1[i4, i5]
  %5[i6<30, i7<4096]: f32 = sub(%1[i6, i7], %4[i6])
  return %3, %5
})");
  FormRequest request{InTasks::kNoProducts};
  request.beside = true;
  request.cuts = {2};
  ChoiceLog choices;
  const ScheduledFusionBlock scheduled = OrFail(ScheduleForm(program, {}, GroupDevice(), request, &choices));
  ASSERT_EQ(scheduled.kernel.phases.size(), 2u) << movement::Print(scheduled.kernel);
  EXPECT_FALSE(scheduled.kernel.phases[0].beside);
  EXPECT_TRUE(scheduled.kernel.phases[1].beside);
  // Without products in tasks, a barrier stands between a product and what reads it.
  const te::Program barrier = Stages(R"(te p(%0: f32[128, 256], %1: f32[256, 512] const, %2: f32[7]) {
  %3[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])
  %4[i3<128]: f32 = sum.f32(i4<512) %3[i3, i4]
  %5[i5<7]: f32 = exp(%2[i5])
  return %4, %5
})");
  const absl::Status refused = ScheduleForm(barrier, {}, GroupDevice(), request, &choices).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("take 2 phases"), std::string::npos) << refused;
}

TEST(ScheduleForm, TheStageOfALibraryHasAPhaseOfItsOwn) {
  DeviceModel device = GroupDevice();
  device.product_library = "cuBLASLt of a test";
  const te::Program program = ParseTe(R"(te p(%0: f32[128, 256], %1: f32[256, 64]) {
  %2[i0<128, i1<64]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])
  %3[i3<128, i4<64]: f32 = exp(%2[i3, i4])
  return %3
})");
  ChoiceLog choices;
  const ScheduledFusionBlock scheduled =
      OrFail(ScheduleForm(program, {}, device, {InTasks::kNoProducts, /*library_product=*/0}, &choices));
  ASSERT_EQ(scheduled.kernel.phases.size(), 2u);
  EXPECT_TRUE(scheduled.kernel.phases[0].steps.at(0).Is<LibraryCall>());
  EXPECT_GT(scheduled.kernel.phases.size(), 1u);
}

}  // namespace
}  // namespace fusion
