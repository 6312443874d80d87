// A small kernel with alternatives that tests change.
#ifndef FUSION_COMPILER_MOVEMENT_TESTING_LOOK_KERNEL_H_
#define FUSION_COMPILER_MOVEMENT_TESTING_LOOK_KERNEL_H_

#include "compiler/movement/kernel.h"

namespace fusion::movement::testing {

// y[i] = the sum of 8 elements of x from i on, in 4 tasks of 16. The first step makes the sums in scratch and looks at
// them. The second one stores them where they are finite; where they are not, the third one adds up once more.
inline Kernel LookingSums() {
  Kernel kernel;
  kernel.buffers.resize(4);
  kernel.buffers[0].elements = 71;
  kernel.buffers[1].elements = 64;
  kernel.buffers[2] = {Scope::kBlock, DType::kF32, 16};
  kernel.buffers[3] = {Scope::kBlock, DType::kF32, 1};
  const te::Axis task{0, 4};
  const auto sum = [&](const te::Axis& i, const te::Axis& k) {
    Step step;
    step.label = "sum";
    step.loops = {{i, std::nullopt}};
    step.reduction.emplace();
    step.reduction->kind = te::ReductionKind::kSum;
    step.reduction->acc = DType::kF32;
    step.reduction->axes = {k};
    step.body = {te::Load(0, DType::kF32, {te::Index(task) * 16 + te::Index(i) + te::Index(k)})};
    step.store_types = {DType::kF32};
    return step;
  };
  const te::Axis i{1, 16}, j{3, 16}, l{4, 16};
  Step sums = sum(i, {2, 8}), again = sum(l, {5, 8}), copy;
  sums.stores = {{2, te::Index(i)}};
  sums.look = Look{3, te::Index(0)};
  copy.label = "y";
  copy.loops = {{j, std::nullopt}};
  copy.body = {te::Load(2, DType::kF32, {te::Index(j)})};
  copy.stores = {{1, te::Index(task) * 16 + te::Index(j)}};
  copy.store_types = {DType::kF32};
  copy.strategy = VectorMap{.axis = 3};
  copy.runs_if = Condition{3, true};
  again.stores = {{1, te::Index(task) * 16 + te::Index(l)}};
  again.runs_if = Condition{3, false};
  Phase phase;
  phase.grid = {task};
  phase.steps = {sums, copy, again};
  kernel.phases = {phase};
  kernel.next_axis = 6;
  kernel.scratch_bytes = kernel.PlannedScratchBytes();
  return kernel;
}

}  // namespace fusion::movement::testing

#endif  // FUSION_COMPILER_MOVEMENT_TESTING_LOOK_KERNEL_H_
