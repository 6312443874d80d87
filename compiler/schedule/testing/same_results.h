// For tests of program transforms: the other program must return the same bits as the first.
#ifndef FUSION_COMPILER_SCHEDULE_TESTING_SAME_RESULTS_H_
#define FUSION_COMPILER_SCHEDULE_TESTING_SAME_RESULTS_H_

#include <gtest/gtest.h>

#include <vector>

#include "compiler/te/interpreter/interpreter.h"

namespace fusion {

// Inputs and results are f32. The inputs are small integers, so that every order of a sum is exact.
inline void ExpectSameResults(const te::Program& whole, const te::Program& other) {
  std::vector<Tensor> inputs;
  for (const te::TensorId t : whole.inputs) {
    Tensor tensor(DType::kF32, whole.tensors[t].shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.mutable_as<float>()[i] = static_cast<float>(i * 7 % 11 - 5);
    inputs.push_back(tensor);
  }
  const absl::StatusOr<std::vector<Tensor>> want = te::Interpret(whole, inputs), got = te::Interpret(other, inputs);
  ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
  const Tensor &a = (*want)[0], &b = (*got)[0];
  for (int64_t i = 0; i < a.num_elements(); ++i) ASSERT_EQ(a.as<float>()[i], b.as<float>()[i]) << i;
}

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TESTING_SAME_RESULTS_H_
