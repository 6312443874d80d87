#include "compiler/schedule/stitch/window_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;
using ::testing::HasSubstr;
using testing::OrFail;

// The plan of a program along its result's first axis, which its tensors lay out plainly.
absl::StatusOr<RowPlan> Plan(const std::string& text, int64_t step = 1) {
  DraftedProgram drafted(text);
  const std::vector<PhysicalTe> stages = drafted.PhysicalStages();
  const LayoutOf plain = [](te::TensorId) { return Layout(); };
  return PlanRows(drafted.program, stages, plain, 0, step, &drafted.draft.axes);
}

// Sums of three rows of three rows, `dilation` apart, `stride` rows further with each row of the result.
std::string TwoSums(int64_t rows, int64_t results, int64_t stride = 1, int64_t dilation = 1) {
  return absl::StrCat("te p(%0: f32[", rows, ", 16]) {\n  %1[i0<", rows,
                      ", i1<16]: f32 = sum.f32(i2<3) %0[i0 + i2 - 1, i1]?0.0\n  %2[i3<", results,
                      ", i4<16]: f32 = sum.f32(i5<3) %1[", stride, "*i3 + ", dilation, "*i5 - ", dilation,
                      ", i4]?0.0\n  return %2\n}");
}

TEST(PlanRows, AWindowOfThreeRowsKeepsThree) {
  const RowPlan plan = OrFail(Plan(TwoSums(10, 10)));
  ASSERT_EQ(plan.stages.size(), 2u);
  EXPECT_TRUE(plan.slides);
  EXPECT_EQ(plan.stages[0].kept, 3);
  EXPECT_EQ(plan.stages[0].first, 0);
  EXPECT_EQ(plan.stages[1].first, 1) << "a row of the first stage is ahead of the window's middle";
  EXPECT_EQ(plan.stages[0].turn.extent, 10);
  EXPECT_EQ(plan.iterations, 11);
  ASSERT_EQ(plan.windows.size(), 1u);
  EXPECT_EQ(plan.windows[0].first, -1);
  EXPECT_EQ(plan.windows[0].rows, 3);
}

TEST(PlanRows, DilatedWindowsKeepMoreAndBeginLater) {
  const RowPlan plan = OrFail(Plan(TwoSums(20, 20, 1, 4)));
  EXPECT_EQ(plan.stages[0].kept, 9);
  EXPECT_EQ(plan.stages[1].first, 4);
  EXPECT_EQ(OrFail(Plan(TwoSums(6, 6, 1, 4))).stages[0].kept, 6) << "no more than there are";
}

TEST(PlanRows, AStrideTakesTwoRowsATurn) {
  const RowPlan plan = OrFail(Plan(TwoSums(11, 6, 2)));
  EXPECT_EQ(plan.stages[0].step, 2);
  EXPECT_EQ(plan.stages[0].turn.extent, 6) << "of two rows, the last of which does not exist";
  EXPECT_EQ(plan.stages[0].kept, 4) << "three rows, in whole turns";
  EXPECT_EQ(plan.stages[1].first, 0);
}

TEST(PlanRows, RowsThatNobodyReadsAreNotComputed) { EXPECT_EQ(OrFail(Plan(TwoSums(20, 4))).stages[0].turn.extent, 5); }

TEST(PlanRows, TurnsOfSeveralRows) {
  const RowPlan plan = OrFail(Plan(TwoSums(18, 18), 4));
  EXPECT_EQ(plan.stages[0].turn.extent, 5);
  EXPECT_EQ(plan.stages[0].kept, 12) << "nine rows, in whole turns";
  EXPECT_EQ(plan.stages[1].first, 1);
}

// The value that is read again two windows later has waited in its ring.
TEST(PlanRows, AResidualWaits) {
  const RowPlan plan = OrFail(Plan(R"(te p(%0: f32[10, 16]) {
  %1[i0<10, i1<16]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<16]: f32 = sum.f32(i4<3) %1[i2 + i4 - 1, i3]?0.0
  %3[i5<10, i6<16]: f32 = sum.f32(i7<3) add(%2[i5 + i7 - 1, i6]?0.0, %1[i5, i6])
  return %3
})"));
  EXPECT_EQ(plan.stages[0].first, 0);
  EXPECT_EQ(plan.stages[1].first, 1);
  EXPECT_EQ(plan.stages[2].first, 2);
  EXPECT_EQ(plan.stages[0].kept, 3);
  EXPECT_EQ(plan.windows.size(), 3u);
}

TEST(PlanRows, WhatIsEnlargedMovesByHalfARow) {
  const std::string text = R"(te p(%0: f32[10, 16]) {
  %1[i0<10, i1<16]: f32 = exp(%0[i0, i1])
  %2[i2<20, i3<16]: f32 = sum.f32(i4<3) %1[(i2 + 2*i4)//2, i3]?0.0
  return %2
})";
  EXPECT_THAT(std::string(Plan(text).status().message()), HasSubstr("does not move by whole rows"));
  EXPECT_EQ(OrFail(Plan(text, 2)).stages[0].step, 1);
}

TEST(PlanRows, Refusals) {
  EXPECT_THAT(std::string(Plan(R"(te p(%0: f32[10, 16]) {
  %1[i0<10, i1<16]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<16]: f32 = sum.f32(i4<10) %1[i4, i3]
  return %2
})")
                              .status()
                              .message()),
              HasSubstr("each turn reads the same elements of"));
  EXPECT_THAT(std::string(Plan(R"(te p(%0: f32[10, 64]) {
  %1[i0<10, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<10, i3<64]: f32 = sum.f32(i4<3) %1[i2 + i4 - 64, i3]?0.0
  return %2
})")
                              .status()
                              .message()),
              HasSubstr("lie in padding"));
  EXPECT_THAT(std::string(Plan(R"(te p(%0: f32[16, 16]) {
  %1[i0<16, i1<16]: f32 = exp(%0[i0, i1])
  %2[i2<16]: f32 = exp(%1[i2, i2])
  return %2
})")
                              .status()
                              .message()),
              HasSubstr("moves in two dimensions"));
}

}  // namespace
}  // namespace fusion
