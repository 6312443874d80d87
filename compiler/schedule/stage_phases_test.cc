#include "compiler/schedule/stage_phases.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::DraftedProgram;
using testing::GroupDevice;
using testing::Schedule;
using testing::Strategies;

// Three parts of 64, 128 and 64 channels, each through its own expression.
const char kParts[] = R"(te p(%0: f32[1, 64, 28, 28], %1: f32[1, 128, 28, 28], %2: f32[1, 64, 28, 28]) {
  %3[i0<1, i1<64, i2<28, i3<28]: f32 = max(0.0, %0[i0, i1, i2, i3])
  %4[i4<1, i5<128, i6<28, i7<28]: f32 = max(0.0, %1[i4, i5, i6, i7])
  %5[i8<1, i9<64, i10<28, i11<28]: f32 = exp(%2[i8, i9, i10, i11])
  %6[i12<1, i13<256, i14<28, i15<28]: f32 = if i13 < 64 then %3[i12, i13, i14, i15] else if i13 < 192 then %4[i12, i13 - 64, i14, i15] else %5[i12, i13 - 192, i14, i15]
  return %6
})";

TEST(StagePhases, PartsOfAConcatAreLoopsOfTheirOwn) {
  const Layout blocked{1, 16};
  for (const bool fusion_blocks : {false, true}) {
    std::map<te::TensorId, Layout> layouts;
    if (fusion_blocks) layouts = {{0, blocked}, {1, blocked}, {2, blocked}, {6, blocked}};
    const ScheduledFusionBlock scheduled = Schedule(kParts, layouts);
    ASSERT_EQ(scheduled.kernel.phases.size(), 3u) << movement::Print(scheduled.kernel);
    EXPECT_EQ(movement::Print(scheduled.kernel).find(" if "), std::string::npos) << movement::Print(scheduled.kernel);
    for (const movement::Phase& phase : scheduled.kernel.phases) {
      EXPECT_TRUE(phase.steps[0].Is<movement::VectorMap>());
    }
  }
}

TEST(StagePhases, PartsOfRowsShareTasks) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[512, 384], %1: f32[512, 256]) {
  %2[i0<512, i1<640]: f32 = if i1 < 384 then %0[i0, i1] else %1[i0, i1 - 384]
  return %2
})");
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(scheduled.kernel.phases.at(0).steps.size(), 2u);
}

// The mirrored border of a Pad runs in one task beside its vectors.
TEST(StagePhases, BordersOfRowsArePeeled) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[64, 100]) {
  %1[i0<64, i1<102]: f32 = if i1 < 1 then %0[i0, 1 - i1] else if i1 < 101 then %0[i0, i1 - 1] else %0[i0, 199 - i1]
  return %1
})");
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u) << movement::Print(scheduled.kernel);
  EXPECT_EQ(Strategies(scheduled.kernel.phases.at(0)), (std::vector<std::string>{"scalar", "map", "scalar"}))
      << movement::Print(scheduled.kernel);
}

TEST(StagePhases, APartThatIsNoTasksWorthStaysInTheLoop) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[1, 64], %1: f32[1, 64]) {
  %2[i0<1, i1<128]: f32 = if i1 < 64 then %0[i0, i1] else %1[i0, i1 - 64]
  return %2
})");
  EXPECT_EQ(scheduled.kernel.phases.size(), 1u);
}

// The phases of a program's only stage.
std::vector<movement::Phase> PhasesOf(const std::string& text, const DeviceModel& device = Device()) {
  DraftedProgram drafted(text, device);
  const absl::Status added = AddStagePhases(drafted.program.tes.at(0), &drafted.draft);
  EXPECT_TRUE(added.ok()) << added;
  return drafted.draft.kernel.phases;
}

TEST(StagePhases, TheFirstFormThatAStageCanTake) {
  struct Case {
    const char* what;
    const char* text;
    std::vector<std::string> steps;  // of the first phase
    DeviceModel device = Device();
  };
  const char kProduct[] =
      "te p(%0: f32[128, 256], %1: f32[256, 64] const) {\n"
      "  %2[i0<128, i1<64]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])\n  return %2\n}";
  for (const Case& c :
       {Case{"a map", "te p(%0: f32[64]) {\n  %1[i0<64]: f32 = exp(%0[i0])\n  return %1\n}", {"map"}},
        Case{"a prefix sum",
             "te p(%0: f32[8, 64]) {\n  %1[i0<8, i1<64]: f32 = sum.f32(i2<64) if i2 < i1 + 1 then %0[i0, i2] else 0.0\n"
             "  return %1\n}",
             {"prefix"}},
        Case{"rows",
             "te p(%0: f32[8, 64]) {\n  %1[i0<8]: f32 = sum.f32(i1<64) %0[i0, i1]\n  return %1\n}",
             {"row_reduction"}},
        Case{"columns beyond the caches",
             "te p(%0: f32[4096, 768]) {\n  %1[i0<768]: f32 = sum.f32(i1<4096) %0[i1, i0]\n  return %1\n}",
             {"map", "map", "map"}},
        Case{"a product", kProduct, {"tile"}},
        Case{"a product on a device of work-groups", kProduct, {"threadgroup_tile"}, GroupDevice()},
        Case{"a row that is too short for vectors",
             "te p(%0: f32[7, 3]) {\n  %1[i0<7]: f32 = sum.f32(i1<3) %0[i0, i1]\n  return %1\n}",
             {"scalar"}}}) {
    const std::vector<movement::Phase> phases = PhasesOf(c.text, c.device);
    ASSERT_FALSE(phases.empty()) << c.what;
    EXPECT_EQ(Strategies(phases[0]), c.steps) << c.what;
  }
}

TEST(StagePhases, AStageWithoutElementsHasNoTasks) {
  const std::vector<movement::Phase> phases =
      PhasesOf("te p(%0: f32[0, 8]) {\n  %1[i0<0, i1<8]: f32 = exp(%0[i0, i1])\n  return %1\n}");
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases[0].tasks(), 0);
}

TEST(StagePhases, ALibraryPhaseNeedsALibrary) {
  DraftedProgram drafted("te p(%0: f32[64]) {\n  %1[i0<64]: f32 = exp(%0[i0])\n  return %1\n}");
  EXPECT_EQ(AddLibraryPhase(drafted.program.tes.at(0), &drafted.draft).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(drafted.draft.kernel.phases.empty());
}

// A row times a matrix: on a device of work-groups a row of the packed matrix is reduced by neighbouring work-items, on
// a processor several columns by one core.
TEST(StagePhases, WorkItemsShareTheRowsOfAProductOfFewRows) {
  const char kProduct[] = R"(te p(%0: f32[2, 1024], %1: f32[1024, 768] const) {
  %2[i0<2, i1<768]: f32 = sum.f32(i2<1024) mul(%0[i0, i2], %1[i2, i1])
  return %2
})";
  const ScheduledFusionBlock shared = Schedule(kProduct, {}, GroupDevice());
  ASSERT_EQ(shared.kernel.phases.size(), 1u) << movement::Print(shared.kernel);
  EXPECT_EQ(Strategies(shared.kernel.phases[0]), std::vector<std::string>{"row_reduction"})
      << movement::Print(shared.kernel);
  EXPECT_GE(shared.kernel.phases[0].tasks(), 2 * GroupDevice().parallel_units);
  ASSERT_EQ(shared.kernel.packs.size(), 1u);
  EXPECT_TRUE(Schedule(kProduct).kernel.phases.at(0).steps[0].Is<movement::RegisterTile>());
}

}  // namespace
}  // namespace fusion
