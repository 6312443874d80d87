#include "compiler/schedule/vector/vectorize.h"

#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "compiler/movement/verify.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

// A row of two parts, the first of which has `at` of 96 elements.
movement::Step RowOfParts(int at, const DeviceModel& device) {
  testing::DraftedProgram drafted(absl::StrFormat(R"(te p(%%0: f32[4, 96], %%1: f32[4, 96]) {
  %%2[i0<4]: f32 = max.f32(i1<96) if i1 < %1$d then %%0[i0, i1] else %%1[i0, i1 - %1$d]
  return %%2
})",
                                                  at));
  return StepOf(drafted.NestOf(), device);
}

TEST(StepOf, RowsOfPartsAreReducedInVectors) {
  EXPECT_TRUE(RowOfParts(32, testing::Device()).Is<movement::RowReduction>());
  EXPECT_TRUE(RowOfParts(8, testing::Device()).Is<movement::RowReduction>()) << "80 of 96 elements are whole vectors";
  EXPECT_TRUE(RowOfParts(30, testing::Device(128)).Is<movement::ScalarLoops>()) << "64 of 96 are";
  EXPECT_TRUE(RowOfParts(32, testing::GroupDevice()).Is<movement::ScalarLoops>()) << "teams reduce rows of one body";
}

// The only loop of the step holds its lanes: when a grid is taken out of it, the lanes go with the remaining loop, in
// whole vectors.
TEST(MoveLoopsToGrid, LanesOfATileAreOfTheLoopThatIsLeft) {
  for (const int work_group_size : {1, 64}) {
    DeviceModel device;
    device.vector_bytes = 64;
    device.work_group_size = work_group_size;
    AxisSource axes(0);
    const te::Axis column = axes.New(1024), row = axes.New(512);
    movement::Kernel kernel;
    kernel.buffers.resize(2);
    kernel.buffers[0].elements = column.extent * row.extent;
    kernel.buffers[1].elements = column.extent;
    movement::Step step;
    step.loops = {{column, std::nullopt}};
    step.reduction = te::Reduction{te::ReductionKind::kSum, {row}, {}, DType::kF32, {}};
    step.body = {te::Load(0, DType::kF32, {te::Index(row) * column.extent + te::Index(column)})};
    step.stores = {{1, te::Index(column)}};
    step.store_types = {DType::kF32};
    step.strategy = movement::RegisterTile{.lane_axis = column.id};

    movement::Phase phase;
    ChoiceLog choices;
    MoveLoopsToGrid(&step, /*cost_per_point=*/1e6, device, &axes, &choices, &phase.grid);
    ASSERT_EQ(phase.grid.size(), 1u);
    EXPECT_EQ(step.loops[0].axis.extent % 16, 0);
    phase.steps = {step};
    kernel.phases = {phase};
    kernel.next_axis = axes.next();
    EXPECT_TRUE(movement::Verify(kernel).ok()) << movement::Verify(kernel);
  }
}

// A loop over blocks of 2048 of 4099 elements ends at 4099 in the last block, also where tasks share the blocks out.
TEST(MoveLoopsToGrid, LimitsStay) {
  for (const int64_t block : {2048, 2050}) {
    for (const bool in_front : {false, true}) {  // of another loop
      const DeviceModel device = testing::Device(64);
      movement::Kernel kernel;
      AxisSource axes(0);
      const te::Axis around = axes.New(3), within = axes.New(block), other = axes.New(in_front ? 4 : 1);
      const te::Index place = te::Index(around) * block + te::Index(within);
      const int64_t elements = in_front ? 4 * 4099 : 4099;
      kernel.buffers = {{Scope::kKernel, DType::kF32, elements}, {Scope::kKernel, DType::kF32, elements}};
      movement::Step step;
      step.label = "map";
      step.loops = {{around, std::nullopt}, {within, te::Index(4099) - te::Index(around) * block}};
      if (in_front) step.loops.push_back({other, std::nullopt});
      const te::Index address = in_front ? place * 4 + te::Index(other) : place;
      step.body = {te::Call(te::Op::kAsinh, {te::Load(0, DType::kF32, {address})})};
      step.stores = {{1, address}};
      step.store_types = {DType::kF32};
      movement::Phase phase;
      ChoiceLog choices;
      MoveLoopsToGrid(&step, /*cost_per_point=*/1e6, device, &axes, &choices, &phase.grid);
      EXPECT_GE(phase.grid.size(), 1u);
      const bool cut = phase.grid.size() == 2;
      EXPECT_EQ(cut, !in_front && block == 2048);
      ASSERT_TRUE(step.loops[0].limit.has_value());
      phase.steps = {step};
      kernel.phases = {phase};
      kernel.next_axis = axes.next();
      EXPECT_TRUE(movement::Verify(kernel).ok()) << movement::Verify(kernel);
      kernel.phases[0].steps[0].loops[0].limit.reset();
      EXPECT_FALSE(movement::Verify(kernel).ok()) << "a store past the end";
    }
  }
}

TEST(MoveLoopsToGrid, TasksFollowTheDevice) {
  constexpr char kText[] = R"(te p(%0: f32[4096, 1024]) {
  %1[i0<4096, i1<1024]: f32 = exp(%0[i0, i1])
  return %1
})";
  auto tasks = [&](int units, int vector_bytes, double flops_per_s) {
    DeviceModel device = testing::Device(vector_bytes);
    device.parallel_units = units;
    device.fma_f32_flops_per_s = flops_per_s;
    ScheduledFusionBlock scheduled = ScheduleFusionBlock(testing::Stages(kText), {}, device).value();
    return scheduled.kernel.phases.at(0).tasks();
  };
  EXPECT_LT(tasks(1, 64, 1e11), tasks(16, 64, 1e11));
  EXPECT_EQ(tasks(2, 64, 1e11), tasks(2, 64, 3e11)) << "a measured rate may not change what is built";
}

// The rows of a map are shared out until each unit of a device of work-groups has a task, and no further than leaves a
// vector for each work-item.
TEST(MoveLoopsToGrid, TasksLeaveNoWorkItemIdle) {
  DeviceModel device = testing::GroupDevice();
  device.vector_bytes = 16;
  AxisSource axes(0);
  const te::Axis image = axes.New(64), row = axes.New(16), column = axes.New(64);
  movement::Step step;
  for (const te::Axis& axis : {image, row, column}) step.loops.push_back({axis, std::nullopt});
  const te::Index place = (te::Index(image) * 16 + te::Index(row)) * 64 + te::Index(column);
  step.body = {te::Load(0, DType::kF32, {place})};
  step.stores = {{1, place}};
  step.store_types = {DType::kF32};
  step.strategy = movement::VectorMap{.axis = column.id};
  std::vector<te::Axis> grid;
  ChoiceLog choices;
  MoveLoopsToGrid(&step, /*cost_per_point=*/1e3, device, &axes, &choices, &grid);
  ASSERT_EQ(grid.size(), 1u) << "a row of 16 vectors would leave seven in eight of the 128 work-items idle";
  EXPECT_EQ(grid[0].id, image.id);
}

}  // namespace
}  // namespace fusion
