// For tests of operator families: runs one operator on given tensors through inference, lowering and the interpreter.
#ifndef FUSION_COMPILER_OPS_REGISTRY_OP_TESTING_H_
#define FUSION_COMPILER_OPS_REGISTRY_OP_TESTING_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

struct OpCase {
  std::string op;
  std::vector<Tensor> inputs;  // a tensor of shape [0] made by Absent() stands for an absent input
  std::vector<std::pair<std::string, ecg::Attribute>> attrs = {};
  std::set<int> constants = {};  // which inputs are constants of the graph
  int num_outputs = 1;
};

Tensor F32(Shape shape, const std::vector<double>& values);
Tensor I64(Shape shape, const std::vector<int64_t>& values);
Tensor Absent();
Tensor Wave(const Shape& shape, double step);  // f32: sin(step), sin(2·step), …
std::vector<double> Elements(const Tensor& tensor);

// Returns the outputs of the operator, or the error of inference, lowering, verification or interpretation.
absl::StatusOr<std::vector<Tensor>> RunOp(const OpCase& op_case);
// Returns the first output's elements. A failed status shows in the test as an exception (bad StatusOr access).
std::vector<double> Values(const absl::StatusOr<std::vector<Tensor>>& outputs, int output = 0);
// Returns the number of tensor expressions that the operator lowers to, or -1 on error.
int CountTes(const OpCase& op_case);
// Returns whether the operator lowers to one routine.
bool IsRoutine(const OpCase& op_case);
MappingType MappingOf(const OpCase& op_case);
absl::StatusOr<ecg::ValueType> TypeOf(const OpCase& op_case);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_OP_TESTING_H_
