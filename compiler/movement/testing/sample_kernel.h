// A small kernel that tests change.
#ifndef FUSION_COMPILER_MOVEMENT_TESTING_SAMPLE_KERNEL_H_
#define FUSION_COMPILER_MOVEMENT_TESTING_SAMPLE_KERNEL_H_

#include "compiler/movement/kernel.h"

namespace fusion::movement::testing {

// y[i] = exp(x[i]) over 4 tasks of 16.
inline Kernel Sample() {
  Kernel kernel;
  kernel.buffers.resize(2);
  kernel.buffers[0].elements = kernel.buffers[1].elements = 64;
  const te::Axis task{0, 4}, i{1, 16};
  const te::Index at = te::Index(task) * 16 + te::Index(i);
  Step step;
  step.label = "y";
  step.loops = {{i, std::nullopt}};
  step.body = {te::Call(te::Op::kExp, {te::Load(0, DType::kF32, {at})})};
  step.stores = {{1, at}};
  step.store_types = {DType::kF32};
  step.strategy = VectorMap{.axis = 1};
  kernel.phases = {{{task}, {step}}};
  kernel.next_axis = 2;
  return kernel;
}

}  // namespace fusion::movement::testing

#endif  // FUSION_COMPILER_MOVEMENT_TESTING_SAMPLE_KERNEL_H_
