#include "compiler/ops/registry/op_testing.h"

#include <cmath>

#include "compiler/ops/registry/infer_types.h"
#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

struct Built {
  ecg::Graph graph;
  ecg::NodeId node = ecg::kNone;
};

absl::StatusOr<Built> Build(const OpCase& op_case) {
  Built built;
  ecg::Node node;
  node.op = op_case.op;
  node.name = "n";
  for (const auto& [name, value] : op_case.attrs) node.attrs.Set(name, value);
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    const Tensor& tensor = op_case.inputs[i];
    if (tensor.data() == nullptr) {
      node.inputs.push_back(ecg::kNone);
    } else if (op_case.constants.count(static_cast<int>(i)) != 0) {
      node.inputs.push_back(built.graph.AddConstant("c", tensor));
    } else {
      node.inputs.push_back(built.graph.AddInput("x", {tensor.dtype(), tensor.shape()}));
    }
  }
  ASSIGN_OR_RETURN(const auto types, InferTypes(MakeContext(built.graph, node), op_case.num_outputs));
  built.node = built.graph.AddNode(node.op, node.name, node.inputs, node.attrs, types);
  return built;
}

absl::StatusOr<LoweredFusionBlock> LowerCase(const OpCase& op_case) {
  ASSIGN_OR_RETURN(const Built built, Build(op_case));
  ASSIGN_OR_RETURN(LoweredFusionBlock block,
                   LowerNodes(built.graph, {built.node}, built.graph.node(built.node).outputs));
  RETURN_IF_ERROR(te::Verify(block.program));
  return block;
}

}  // namespace

Tensor F32(Shape shape, const std::vector<double>& values) {
  return Tensor::From(DType::kF32, std::move(shape), values);
}
Tensor I64(Shape shape, const std::vector<int64_t>& values) {
  return Tensor::From(DType::kI64, std::move(shape), values);
}
Tensor Absent() { return Tensor(); }

absl::StatusOr<std::vector<Tensor>> RunOp(const OpCase& op_case) {
  ASSIGN_OR_RETURN(const LoweredFusionBlock block, LowerCase(op_case));
  // The program's inputs are the node's present inputs in order, followed by tables of the lowering, which carry their
  // values.
  std::vector<Tensor> inputs;
  for (const Tensor& tensor : op_case.inputs) {
    if (tensor.data() != nullptr) inputs.push_back(tensor);
  }
  inputs.resize(block.program.inputs.size());
  return te::Interpret(block.program, inputs);
}

Tensor Wave(const Shape& shape, double step) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, std::sin(step * static_cast<double>(i + 1)));
  return tensor;
}

std::vector<double> Elements(const Tensor& tensor) {
  std::vector<double> elements(tensor.num_elements());
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = tensor.GetDouble(static_cast<int64_t>(i));
  return elements;
}

std::vector<double> Values(const absl::StatusOr<std::vector<Tensor>>& outputs, int output) {
  return Elements(outputs.value()[output]);
}

bool IsRoutine(const OpCase& op_case) {
  const auto block = LowerCase(op_case);
  return block.ok() && block->program.tes.size() == 1 && block->program.tes[0].routine.has_value();
}

int CountTes(const OpCase& op_case) {
  const auto block = LowerCase(op_case);
  return block.ok() ? static_cast<int>(block->program.tes.size()) : -1;
}

MappingType MappingOf(const OpCase& op_case) {
  const Built built = Build(op_case).value();
  return NodeMapping(built.graph, built.graph.node(built.node));
}

absl::StatusOr<ecg::ValueType> TypeOf(const OpCase& op_case) {
  ASSIGN_OR_RETURN(const Built built, Build(op_case));
  return built.graph.value(built.graph.node(built.node).outputs[0]).type;
}

}  // namespace fusion::ops
