#include "compiler/schedule/stitch/stitch_stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/schedule_fusion_block.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::DraftedProgram;
using testing::Schedule;
using testing::Stages;

// Each task reads some row of %2 and could compute all rows, but no task needs the rows between.
TEST(StitchStages, AResultThatIsReadInPartIsNotTheTasksOwn) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 64, 512], %1: i64[64, 512]) {
  %2[i0<64, i1<64, i2<512]: f32 = exp(%0[i0, i1, i2])
  %3[i3<64, i4<512]: i64 = min(max(%1[i3, i4], 0:i64), 63:i64)
  %4[i5<64, i6<512]: f32 = exp(%2[%3[i5, i6]{0..63}, 0, i6])
  return %2, %4
})");
  EXPECT_GT(scheduled.kernel.phases.size(), 1u);
}

// A single task computes everything, including the rows that it does not read.
TEST(StitchStages, ASingleTaskComputesAllOfItsResults) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[4, 4, 8], %1: i64[4, 8], %2: f32[3]) {
  %3[i0<4, i1<4, i2<8]: f32 = exp(%0[i0, i1, i2])
  %4[i3<4, i4<8]: i64 = min(max(%1[i3, i4], 0:i64), 3:i64)
  %5[i7<3]: f32 = exp(%2[i7])
  %6[i5<4, i6<8]: f32 = exp(add(%3[%4[i5, i6]{0..3}, 0, i6], %5[2]))
  return %3, %5, %6
})");
  EXPECT_EQ(scheduled.kernel.phases.size(), 1u) << scheduled.reason;
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u);
  EXPECT_EQ(scheduled.kernel.phases.at(0).tasks(), 1);
}

// The parts of a Concat behind another stage become loops of their own, in vectors.
TEST(StitchStages, RangesInATaskAreVectors) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 512], %1: f32[64, 512], %2: i64[64]) {
  %3[i0<64]: i64 = min(max(%2[i0], 0:i64), 63:i64)
  %4[i1<128, i2<512]: f32 = if i1 < 64 then %0[%3[i1]{0..63}, i2] else %1[i1 - 64, i2]
  return %4
})");
  EXPECT_EQ(scheduled.kernel.phases.size(), 1u) << scheduled.reason;
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u);
  const std::vector<movement::Step>& steps = scheduled.kernel.phases.at(0).steps;
  EXPECT_TRUE(steps.back().Is<movement::VectorMap>()) << movement::Print(scheduled.kernel);
}

// One output of a stage is a result; the other is read within the fusion block only.
TEST(StitchStages, OutputsOfAStageHaveOneHome) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 32]) {
  %1, %2[i0<64]: f32, f32 = reduce(i1<32)(0.0, 0.0) -> (add(acc0, %0[i0, i1]), max(acc1, %0[i0, i1]))
  %3[i2<64]: f32 = exp(%2[i2])
  %4[i3<64, i4<32]: f32 = sub(%0[i3, i4], %3[i3])
  return %1, %4
})");
  EXPECT_EQ(scheduled.kernel.phases.size(), 1u) << scheduled.reason;
  EXPECT_EQ(scheduled.kernel.num_args(), 4);
}

// A step of a recurrent network: no element of the matrix is read again, but a single vector of sums would wait for
// each addition.
TEST(StitchStages, ARowTimesAMatrixInATaskHasSeveralVectorsOfSums) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[128], %1: f32[128, 256] const, %2: f32[256]) {
  %3[i0<256]: f32 = sum.f32(i1<128) mul(%0[i1], %1[i1, i0])
  %4[i2<128]: f32 = tanh(add(%3[i2], %2[i2]))
  %5[i3<128]: f32 = mul(exp(%4[i3]), tanh(add(%3[i3 + 128], %4[i3])))
  return %4, %5
})");
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u) << movement::Print(scheduled.kernel);
  const movement::Step& product = scheduled.kernel.phases.at(0).steps.at(0);
  ASSERT_TRUE(product.Is<movement::RegisterTile>()) << movement::Print(scheduled.kernel);
  EXPECT_GT(product.As<movement::RegisterTile>()->outer_count, 1);
  EXPECT_EQ(scheduled.kernel.packs.size(), 1u);
}

// Scratch of a processor is ordinary memory, which a cache holds in part; the memory of a work-group has a fixed size.
TEST(StitchStages, ScratchOfAGroupIsNoMoreThanItsMemory) {
  const te::Program program = Stages(R"(te p(%0: f32[256, 64], %1: f32[64, 8192] const, %2: f32[8192, 64] const) {
  %3[i0<256, i1<8192]: f32 = sum.f32(i2<64) mul(%0[i0, i2], %1[i2, i1])
  %4[i3<256, i4<64]: f32 = sum.f32(i5<8192) mul(%3[i3, i5], %2[i5, i4])
  return %4
})");
  DeviceModel device = Device();
  for (const auto& [kind, beyond] : {std::pair("cpu", true), std::pair("opencl", false)}) {
    device.kind = kind;
    int64_t most = 0;
    for (int form = 0; form < 2; ++form) {
      const absl::StatusOr<ScheduledFusionBlock> scheduled =
          ScheduleFusionBlock(program, {}, device, {{{"form", form}}});
      ASSERT_TRUE(scheduled.ok()) << scheduled.status();
      most = std::max(most, scheduled->kernel.scratch_bytes);
    }
    EXPECT_EQ(most > 1 << 20, beyond) << most << " bytes on " << kind;
  }
}

constexpr char kRows[] = R"(te p(%0: f32[512, 64]) {
  %1[i0<512]: f32 = max.f32(i1<64) %0[i0, i1]
  %2[i2<512, i3<64]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  %3[i4<512, i5<64]: f32 = mul(%2[i4, i5], %2[i4, 63 - i5])
  return %3
})";

TEST(StitchStages, WhatLaterStagesReadLeavesTheTask) {
  DraftedProgram drafted(kRows);
  const absl::Status stitched = StitchStages(0, 2, InTasks::kNoProducts, &drafted.draft);
  ASSERT_TRUE(stitched.ok()) << stitched;
  const KernelDraft& draft = drafted.draft;
  EXPECT_EQ(draft.kernel.buffers.at(draft.buffer_of.at(1)).scope, Scope::kWarp) << "the maximum of a row";
  EXPECT_EQ(draft.kernel.buffers[draft.buffer_of[1]].elements, 1);
  EXPECT_EQ(draft.kernel.buffers.at(draft.buffer_of.at(2)).scope, Scope::kDevice) << "the next phase reads it";
  ASSERT_EQ(draft.kernel.phases.size(), 1u);
  EXPECT_EQ(draft.kernel.phases[0].steps.size(), 2u);
}

void ExpectNothingAdded(const DraftedProgram& drafted) {
  EXPECT_EQ(drafted.draft.kernel.buffers.size(), 2u);
  EXPECT_TRUE(drafted.draft.kernel.phases.empty());
  EXPECT_TRUE(drafted.draft.scratch_boxes.empty());
  EXPECT_EQ(drafted.draft.buffer_of.at(1), -1);
}

// A row times two matrices, whose rows lie along the sums: vectors of each row, or tiles of the columns, which are then
// packed.
TEST(StitchStages, ARowTimesAMatrixMayReadColumns) {
  const char* text = R"(te p(%0: f32[256], %1: f32[1024, 256] const, %2: f32[256], %3: f32[1024, 256] const) {
  %4[i0<1024]: f32 = sum.f32(i1<256) mul(%0[i1], %1[i0, i1])
  %5[i2<1024]: f32 = sum.f32(i3<256) mul(%2[i3], %3[i2, i3])
  %6[i4<1024]: f32 = add(%4[i4], %5[i4])
  return %6
})";
  const auto made = [&](Choices choices) {
    ScheduleOptions options;
    options.choices = std::move(choices);
    return testing::OrFail(ScheduleFusionBlock(Stages(text), {}, Device(), options));
  };
  const ScheduledFusionBlock rows = made({}), first = made({{"product", 1}}),
                             both = made({{"product", 1}, {"product.1", 1}});
  ASSERT_EQ(rows.kernel.phases.size(), 1u) << rows.reason;
  EXPECT_TRUE(rows.kernel.packs.empty());
  EXPECT_EQ(testing::Strategies(rows.kernel.phases[0]), (std::vector<std::string>{"row_reduction", "row_reduction"}));
  ASSERT_EQ(first.kernel.phases.size(), 1u);
  EXPECT_EQ(testing::Strategies(first.kernel.phases[0]), (std::vector<std::string>{"tile", "row_reduction"}));
  EXPECT_EQ(first.kernel.packs.size(), 1u);
  ASSERT_EQ(both.kernel.phases.size(), 1u);
  EXPECT_EQ(testing::Strategies(both.kernel.phases[0]), (std::vector<std::string>{"tile", "tile"}));
  EXPECT_EQ(both.kernel.packs.size(), 2u);
}

TEST(StitchStages, ARefusalLeavesTheDraftAsItWas) {
  DraftedProgram drafted(R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})");
  const absl::Status refused = StitchStages(0, 2, InTasks::kNoProducts, &drafted.draft);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  ExpectNothingAdded(drafted);
}

TEST(StitchStages, AMeasurementMayKeepThePhases) {
  DraftedProgram drafted(kRows, Device(), {}, {{"stitch", 1}});
  const absl::Status refused = StitchStages(0, 3, InTasks::kNoProducts, &drafted.draft);
  EXPECT_EQ(refused.message(), "one phase for each stage was measured to be faster");
  ExpectNothingAdded(drafted);
}

TEST(StitchStages, AProductNeedsAFormThatHoldsProducts) {
  const char* text = R"(te p(%0: f32[128, 256], %1: f32[256, 512] const) {
  %2[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])
  %3[i3<128]: f32 = sum.f32(i4<512) %2[i3, i4]
  return %3
})";
  DraftedProgram without(text), with(text);
  const absl::Status refused = StitchStages(0, 2, InTasks::kNoProducts, &without.draft);
  EXPECT_NE(refused.message().find("is a product that needs a register tile with a grid of its own"), std::string::npos)
      << refused;
  const absl::Status stitched = StitchStages(0, 2, InTasks::kProducts, &with.draft);
  ASSERT_TRUE(stitched.ok()) << stitched;
  EXPECT_TRUE(with.draft.kernel.phases.at(0).steps.at(0).Is<movement::RegisterTile>());
}

}  // namespace
}  // namespace fusion
