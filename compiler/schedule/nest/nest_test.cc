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

TEST(Nest, FusesAxesThatAreWalkedAsOne) {
  const ScheduledFusionBlock block = Schedule(R"(te p(%0: f32[6, 5, 32]) {
  %1[i0<6, i1<5, i2<32]: f32 = exp(%0[i0, i1, i2])
  return %1
})");
  const movement::Phase& phase = block.kernel.phases.at(0);
  EXPECT_EQ(phase.grid.size() + phase.steps[0].loops.size(), 1u) << movement::Print(block.kernel);
  EXPECT_TRUE(phase.steps[0].Is<movement::VectorMap>());
}

}  // namespace
}  // namespace fusion
