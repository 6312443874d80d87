#include "compiler/schedule/nest/nest.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Schedule;

// 128 results are computed in tasks, of which the last has 117: 26 rounds of 5 would go past the end of the full tasks.
TEST(Nest, AnAxisWithALimitIsSplitOnlyByADivisorOfItsExtent) {
  for (const int64_t extent : {125, 128}) {
    AxisSource axes(0);
    const te::Axis task = axes.New(4), local = axes.New(extent);
    Nest nest;
    nest.axes = {local};
    nest.body = {te::Load(0, DType::kF32, {te::FloorDiv(te::Index(local), 5)})};
    nest.limits[local.id] = te::Index(501) - te::Index(task) * extent;
    SplitSpatialAxes(&nest, &axes, 2, /*cut_short=*/true);
    EXPECT_EQ(nest.axes.size(), extent % 5 == 0 ? 2u : 1u) << extent;
  }
}

TEST(Nest, PeeledRangesHaveNoCondition) {
  for (const bool turned : {false, true}) {  // tests of the axis, and of its negative
    AxisSource axes(0);
    const te::Axis row = axes.New(5), x = axes.New(50);
    const te::Index at = turned ? te::Index(46) - te::Index(x) : te::Index(x) - 3;  // x in [3, 47)
    const te::Pred inside = {{at, te::Cmp::kGe, te::Index(0)},
                             {at, te::Cmp::kLt, te::Index(44)},
                             {te::Index(row), te::Cmp::kLt, te::Index(4)}};
    Nest nest;
    nest.axes = {row, x};
    nest.body = {te::If(inside, te::Load(0, DType::kF32, {at}), te::Imm(DType::kF32, 0))};
    const std::vector<Nest> parts = PeelInnermost(nest, &axes);
    ASSERT_EQ(parts.size(), 3u) << turned;
    const std::vector<int64_t> extents = {parts[0].axes[1].extent, parts[1].axes[1].extent, parts[2].axes[1].extent};
    EXPECT_EQ(extents, (std::vector<int64_t>{3, 44, 3})) << turned;
    EXPECT_EQ(parts[0].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[2].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[1].body[0]->pred.size(), 1u);  // the test of the row
    EXPECT_FALSE(PredUses(parts[1], parts[1].axes[1].id));
  }
}

TEST(Nest, FusesAxesThatAreWalkedAsOne) {
  const ScheduledBlock block = Schedule(R"(te p(%0: f32[6, 5, 32]) {
  %1[i0<6, i1<5, i2<32]: f32 = exp(%0[i0, i1, i2])
  return %1
})");
  const movement::Phase& phase = block.kernel.phases.at(0);
  EXPECT_EQ(phase.grid.size() + phase.steps[0].loops.size(), 1u) << movement::Print(block.kernel);
  EXPECT_TRUE(phase.steps[0].Is<movement::VectorMap>());
}

}  // namespace
}  // namespace fusion
