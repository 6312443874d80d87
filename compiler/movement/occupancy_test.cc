#include "compiler/movement/occupancy.h"

#include <gtest/gtest.h>

#include "compiler/cost/stored_devices.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_fusion_block.h"

namespace fusion::movement {
namespace {

DeviceModel A100() { return StoredDevice("cuda:sm_80").value(); }

Kernel Scheduled(const std::string& text, const DeviceModel& device) {
  te::Program staged = FormStages(te::Parse(text).value()).value();
  return ScheduleFusionBlock(staged, {}, device).value().kernel;
}

constexpr char kMap[] = R"(te p(%0: f32[512, 768]) {
  %1[i0<512, i1<768]: f32 = max(%0[i0, i1], 0.0)
  return %1
})";
constexpr char kProduct[] = R"(te p(%0: f32[1024, 768], %1: f32[768, 768] const) {
  %2[i0<1024, i1<768]: f32 = sum.f32(i2<768) mul(%0[i0, i2], %1[i2, i1])
  return %2
})";

TEST(EstimateOccupancy, AMapFillsAUnit) {
  const auto occupancy = EstimateOccupancy(Scheduled(kMap, A100()), A100());
  ASSERT_TRUE(occupancy.has_value());
  EXPECT_EQ(occupancy->share, 1);
  EXPECT_EQ(occupancy->groups, 32);
  EXPECT_EQ(occupancy->demand.shared_bytes, 0);
}

TEST(EstimateOccupancy, AccumulatorsAndSlicesOfAProductLeaveRoomForFewer) {
  const Kernel kernel = Scheduled(kProduct, A100());
  const auto occupancy = EstimateOccupancy(kernel, A100());
  ASSERT_TRUE(occupancy.has_value());
  EXPECT_LT(occupancy->share, 0.5);
  EXPECT_GT(occupancy->groups, 0);
  EXPECT_EQ(occupancy->limit, "registers");
  EXPECT_EQ(occupancy->demand.shared_bytes, kernel.scratch_bytes + 64);
  const auto* tile = kernel.phases[0].steps[0].As<ThreadgroupTile>();
  ASSERT_NE(tile, nullptr);
  EXPECT_EQ(occupancy->demand.work_items, tile->item_rows * tile->item_columns);
  EXPECT_GT(occupancy->demand.registers, tile->rows * tile->columns + 20);
}

TEST(EstimateOccupancy, TheLaunchThatHasLeastCounts) {
  Kernel both = Scheduled(kProduct, A100());
  const Kernel map = Scheduled(kMap, A100());
  const double product = EstimateOccupancy(both, A100())->share;
  both.phases.insert(both.phases.begin(), map.phases[0]);
  EXPECT_EQ(EstimateOccupancy(both, A100())->share, product);
  both.phases.pop_back();
  both.scratch_bytes = 0;
  EXPECT_EQ(EstimateOccupancy(both, A100())->share, 1);
}

// A window of one element leaves a tile whose reduction has no axes.
TEST(EstimateOccupancy, ATileMayReduceNothing) {
  Kernel kernel = Scheduled(kMap, A100());
  Step& step = kernel.phases[0].steps[0];
  step.strategy = RegisterTile{};
  step.reduction.emplace();
  ASSERT_TRUE(step.reduction->axes.empty());
  const auto occupancy = EstimateOccupancy(kernel, A100());
  ASSERT_TRUE(occupancy.has_value());
  EXPECT_GT(occupancy->groups, 0);
}

TEST(EstimateOccupancy, AProcessorHasNone) {
  const DeviceModel core;
  EXPECT_FALSE(EstimateOccupancy(Scheduled(kMap, core), core).has_value());
}

}  // namespace
}  // namespace fusion::movement
