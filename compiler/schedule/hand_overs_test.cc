#include "compiler/schedule/hand_overs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using ::testing::HasSubstr;
using testing::OrFail;
using testing::Stages;

// Each row's sum, and each element divided by it: stages of the origins 3 and 4.
te::Program Normalized(int rows, int columns) {
  te::Program program = Stages(absl::StrCat("te p(%0: f32[", rows, ", ", columns, "]) {\n  %1[i0<", rows,
                                            "]: f32 = sum.f32(i1<", columns, ") %0[i0, i1]\n  %2[i2<", rows, ", i3<",
                                            columns, "]: f32 = div(%0[i2, i3], %1[i2])\n  return %2\n}"));
  program.tes.at(0).origins = {3};
  program.tes.at(1).origins = {4};
  return program;
}

std::vector<StageHandOver> Realised(const te::Program& program) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, Device()));
  return HandOversOf(program, scheduled.kernel);
}

TEST(HandOversOf, RowsOfATaskAreHandedOverInsideIt) {
  const te::Program program = Normalized(256, 512);
  const std::vector<StageHandOver> hand_overs = Realised(program);
  ASSERT_EQ(hand_overs.size(), 1u);
  EXPECT_EQ(hand_overs[0].tensor, program.tes[0].outputs[0]);
  EXPECT_EQ(hand_overs[0].producer, std::vector<int>{3});
  EXPECT_EQ(hand_overs[0].consumer, std::vector<int>{4});
  EXPECT_EQ(hand_overs[0].scope, Scope::kWarp);
}

TEST(HandOversOf, AnotherPhaseWaitsForAllTasks) {
  DeviceModel many = Device();
  many.parallel_units = 64;
  const te::Program program = Normalized(1, 1 << 20);  // one row is too much for a task
  const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, many));
  ASSERT_GT(scheduled.kernel.phases.size(), 1u);
  const std::vector<StageHandOver> hand_overs = HandOversOf(program, scheduled.kernel);
  ASSERT_EQ(hand_overs.size(), 1u);
  EXPECT_EQ(hand_overs[0].scope, Scope::kDevice);
}

TEST(PhaseOriginsOf, NamesWhatEachPhaseComputesFor) {
  const te::Program rows = Normalized(256, 512);
  const ScheduledFusionBlock one = OrFail(ScheduleFusionBlock(rows, {}, Device()));
  EXPECT_EQ(PhaseOriginsOf(rows, one.kernel), (std::vector<std::vector<int>>{{3, 4}}));
  EXPECT_EQ(one.phase_origins, PhaseOriginsOf(rows, one.kernel));
  DeviceModel many = Device();
  many.parallel_units = 64;
  const te::Program row = Normalized(1, 1 << 20);
  const ScheduledFusionBlock several = OrFail(ScheduleFusionBlock(row, {}, many));
  ASSERT_GT(several.phase_origins.size(), 1u);
  EXPECT_EQ(several.phase_origins.size(), several.kernel.phases.size());
  EXPECT_EQ(several.phase_origins.front(), std::vector<int>{3});
  const std::vector<int>& last = several.phase_origins.back();
  EXPECT_TRUE(std::find(last.begin(), last.end(), 4) != last.end());
}

HandOverRequest Request(te::TensorId tensor, int producer, int consumer, Scope nearest, Scope furthest, bool asked) {
  return {tensor, producer, consumer, nearest, furthest, asked};
}

TEST(RealisedScope, IsTheFurthestOfWhatIsLeftOfTheProducer) {
  const HandOverRequest request = Request(5, 0, 2, Scope::kLane, Scope::kBlock, true);
  // Tensor 5 itself was merged into its reader; tensor 6 is what is left of its producer.
  const std::vector<StageHandOver> rest = {{6, {0}, {1, 2}, Scope::kDevice}};
  EXPECT_EQ(RealisedScope(rest, request, {request}), Scope::kDevice);
  EXPECT_EQ(RealisedScope({}, request, {request}), Scope::kLane) << "the two are one stage";
  // A tensor that is a hand-over of its own is no rest of this one.
  const HandOverRequest own = Request(6, 0, 1, Scope::kLane, Scope::kDevice, true);
  EXPECT_EQ(RealisedScope(rest, request, {request, own}), Scope::kLane);
  EXPECT_EQ(RealisedScope(rest, own, {request, own}), Scope::kDevice);
  const std::vector<StageHandOver> others = {{6, {1}, {2}, Scope::kDevice}, {6, {0, 2}, {2}, Scope::kDevice}};
  EXPECT_EQ(RealisedScope(others, request, {request}), Scope::kLane)
      << "of another producer, or of one with the consumer in it";
}

TEST(CheckWithin, NamesTheTensorAndBothScopes) {
  const te::Program program = Normalized(256, 512);
  const te::TensorId sum = program.tes[0].outputs[0];
  te::Program named = program;
  named.tensors[sum].name = "sum";
  const std::vector<StageHandOver> hand_overs = Realised(program);
  const auto check = [&](Scope nearest, Scope furthest, bool asked, bool only_asked = false) {
    return CheckWithin({Request(sum, 3, 4, nearest, furthest, asked)}, hand_overs, named, only_asked);
  };
  EXPECT_TRUE(check(Scope::kLane, Scope::kBlock, true).ok());
  const absl::Status further = check(Scope::kDevice, Scope::kDevice, true);
  EXPECT_EQ(further.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(further.message(), "'sum' is handed over at warp scope, and the plan allows device");
  EXPECT_TRUE(check(Scope::kWarp, Scope::kWarp, true).ok());
  EXPECT_THAT(std::string(check(Scope::kBlock, Scope::kDevice, true).message()), HasSubstr("allows block to device"));
  EXPECT_EQ(check(Scope::kLane, Scope::kLane, false).message(), "'sum' would cross a barrier");
  EXPECT_TRUE(check(Scope::kLane, Scope::kLane, false, /*only_asked=*/true).ok()) << "nobody asked for it";
}

}  // namespace
}  // namespace fusion
