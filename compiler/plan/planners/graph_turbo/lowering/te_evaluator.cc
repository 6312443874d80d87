#include "compiler/plan/planners/graph_turbo/lowering/te_evaluator.h"

#include <algorithm>
#include <utility>

#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

std::vector<int64_t> Strides(const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return strides;
}

// Calls `visit(a, b)` with the row-major numbers of each element of a box of these extents in two arrays that hold it.
template <typename Visit>
void VisitBox(const std::vector<int64_t>& extents, const std::vector<int64_t>& a_origin,
              const std::vector<int64_t>& a_extents, const std::vector<int64_t>& b_origin,
              const std::vector<int64_t>& b_extents, const Visit& visit) {
  const std::vector<int64_t> a_strides = Strides(a_extents), b_strides = Strides(b_extents);
  int64_t a = 0, b = 0, count = 1;
  for (size_t d = 0; d < extents.size(); ++d) {
    a += a_origin[d] * a_strides[d];
    b += b_origin[d] * b_strides[d];
    count *= extents[d];
  }
  std::vector<int64_t> at(extents.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(a, b);
    for (size_t d = extents.size(); d-- > 0;) {
      a += a_strides[d];
      b += b_strides[d];
      if (++at[d] < extents[d]) break;
      a -= at[d] * a_strides[d];
      b -= at[d] * b_strides[d];
      at[d] = 0;
    }
  }
}

void Put(Tensor* tensor, int64_t at, float value) {
  if (tensor->dtype() == DType::kF32) {
    tensor->mutable_as<float>()[at] = value;
  } else if (IsFloat(tensor->dtype())) {
    tensor->SetDouble(at, value);
  } else {
    tensor->SetInt(at, static_cast<int64_t>(value));
  }
}

float Get(const Tensor& tensor, int64_t at) {
  if (tensor.dtype() == DType::kF32) return tensor.as<float>()[at];
  if (IsFloat(tensor.dtype())) return static_cast<float>(tensor.GetDouble(at));
  return static_cast<float>(tensor.GetInt(at));
}

}  // namespace

TeEvaluator::TeEvaluator(const std::vector<te::Program>& expressions) {
  for (const te::Program& expression : expressions) expressions_.emplace_back(expression);
}

absl::StatusOr<TeEvaluator> TeEvaluator::FromTexts(const dsa::Program& program) {
  std::vector<te::Program> expressions;
  for (const dsa::Expression& expression : program.expressions) {
    ASSIGN_OR_RETURN(expressions.emplace_back(), te::Parse(expression.text));
  }
  return TeEvaluator(expressions);
}

bool TeEvaluator::MakesIntegers(int expression, size_t result) const {
  const te::Program& program = expressions_[expression].expression();
  return !IsFloat(program.tensors[program.outputs[result]].dtype);
}

absl::StatusOr<std::vector<std::vector<float>>> TeEvaluator::Evaluate(const dsa::EvaluationRequest& request) {
  const PartOfExpression part = expressions_[request.expression].PartOf(request);
  std::vector<Tensor> inputs;
  for (const te::TensorId t : part.program.inputs) {
    Tensor& tensor = inputs.emplace_back(part.program.tensors[t].dtype, part.program.tensors[t].shape);
    for (size_t o = 0; o < part.operands.size(); ++o) {
      const PlacedBox& box = part.operands[o];
      if (box.tensor != t) continue;
      const std::vector<int64_t> zero(box.extents.size(), 0);
      VisitBox(box.extents, zero, box.extents, box.at, tensor.shape(),
               [&](int64_t a, int64_t b) { Put(&tensor, b, request.values[o][a]); });
    }
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, te::Interpret(part.program, inputs));
  std::vector<std::vector<float>> values;
  for (const PlacedBox& box : part.results) {
    const std::vector<te::TensorId>& made = part.program.outputs;
    const Tensor& output = outputs[std::find(made.begin(), made.end(), box.tensor) - made.begin()];
    std::vector<float>& result = values.emplace_back();
    VisitBox(box.extents, box.at, output.shape(), box.at, output.shape(),
             [&](int64_t a, int64_t) { result.push_back(Get(output, a)); });
  }
  return values;
}

}  // namespace fusion::graph_turbo
