// Draws control flow: If, Loop and Scan, whose subgraphs hold random nodes.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "tests/fuzz/graphs/model_generator.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

onnx::GraphProto* AddSubgraph(const std::string& name, onnx::NodeProto* node) {
  onnx::AttributeProto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::GRAPH);
  a->mutable_g()->set_name(name);
  return a->mutable_g();
}

}  // namespace

std::optional<onnx::NodeProto> ModelGenerator::ControlFlow(Names* visible, int depth) {
  switch (draw_.Below(3)) {
    case 0:
      return Branches(visible, depth);
    case 1:
      return Repetition(visible, depth);
    default:
      return Scanning(visible, depth);
  }
}

void ModelGenerator::Fill(onnx::GraphProto* graph, Names* inside, int depth, int most) {
  for (int n = draw_.Below(most + 1); n > 0; --n) AddTo(graph, inside, depth + 1);
}

void ModelGenerator::Return(const std::string& name, DType dtype, onnx::GraphProto* graph) {
  onnx::ValueInfoProto* info = graph->add_output();
  info->set_name(name);
  info->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(ops::OnnxNumber(dtype)));
}

std::string ModelGenerator::Made(const onnx::GraphProto& graph, DType dtype, const Shape& shape, bool same_shape) {
  Names fitting;
  for (const auto& node : graph.node()) {
    for (const std::string& name : node.output()) {
      const Tensor& value = Of(name);
      if (value.dtype() != dtype || value.shape().size() != shape.size()) continue;
      if (value.shape() == shape || !same_shape) fitting.push_back(name);
    }
  }
  return fitting.empty() ? "" : draw_.OneOf(fitting);
}

std::string ModelGenerator::Condition(const Names& visible) {
  for (const std::string& name : visible) {
    const Tensor& value = Of(name);
    if (value.dtype() == DType::kBool && value.shape().empty() && draw_.Chance(0.6)) return name;
  }
  return draw_.Chance(0.1) ? AddConstant(DrawTensor(DType::kBool, {}, draw_.Bits()))
                           : AddInput(DType::kBool, {}, "_below2", nullptr);
}

std::optional<onnx::NodeProto> ModelGenerator::Branches(Names* visible, int depth) {
  onnx::NodeProto node;
  node.set_op_type("If");
  node.add_input(Condition(*visible));
  onnx::GraphProto* taken = AddSubgraph("then_branch", &node);
  Names inside = *visible;
  Fill(taken, &inside, depth, 3);
  if (taken->node_size() == 0) AddSimple("Identity", {Existing(*visible)}, taken);
  const std::string result = taken->node(taken->node_size() - 1).output(0);
  const DType dtype = Of(result).dtype();
  Return(result, dtype, taken);
  onnx::GraphProto* otherwise = AddSubgraph("else_branch", &node);
  inside = *visible;
  Fill(otherwise, &inside, depth, 3);
  std::string other = Made(*otherwise, dtype, Of(result).shape(), draw_.Chance(0.5));
  if (other.empty()) {
    Shape shape = Of(result).shape();
    if (!shape.empty() && draw_.Chance(0.3))
      shape[draw_.Below(static_cast<int64_t>(shape.size()))] = draw_.Between(1, 6);
    draw_.Limit(&shape);
    other = AddSimple("Identity", {AddConstant(DrawTensor(dtype, shape, draw_.Bits()))}, otherwise);
  }
  Return(other, dtype, otherwise);
  node.add_output(NewName("v"));
  if (!Run(node)) return std::nullopt;
  return node;
}

std::string ModelGenerator::TripCount() {
  const int64_t most = draw_.Between(1, 4);
  // Import keeps constant counts of four and more as loops.
  if (draw_.Chance(0.3)) return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(4, 7)}));
  if (draw_.Chance(0.4)) return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(0, most)}));
  // Bounds the count by a Min, as exporters of beam searches do.
  const std::string count = AddInput(DType::kI64, {}, absl::StrCat("_below", most + 1), nullptr);
  const std::string bound = AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {most}));
  return AddSimple("Min", {count, bound}, model_.mutable_graph());
}

std::string ModelGenerator::NextState(const std::string& state, bool may_grow, onnx::GraphProto* body) {
  const Tensor value = Of(state);
  const std::string made = Made(*body, value.dtype(), value.shape(), true);
  if (!made.empty() && draw_.Chance(0.8)) return made;
  if (may_grow && !value.shape().empty() && draw_.Chance(0.4)) {
    ecg::Attributes attrs;
    attrs.Set("axis", int64_t{draw_.Below(static_cast<int64_t>(value.shape().size()))});
    Shape piece = value.shape();
    piece[attrs.Int("axis")] = draw_.Between(1, 2);
    draw_.Limit(&piece);
    return AddSimple("Concat", {state, AddConstant(DrawTensor(value.dtype(), piece, draw_.Bits()))}, body, attrs);
  }
  if (value.dtype() == DType::kBool) return AddSimple("Not", {state}, body);
  return AddSimple("Add", {state, state}, body);
}

std::string ModelGenerator::LoopCondition(const Names& body_inputs, onnx::GraphProto* body) {
  if (draw_.Chance(0.5)) return AddSimple("Identity", {body_inputs[1]}, body);
  if (draw_.Chance(0.4) || body_inputs.size() < 3) {
    const std::string last = AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(0, 3)}));
    return AddSimple("Less", {body_inputs[0], last}, body);
  }
  // A condition that is known only when the loop runs.
  ecg::Attributes to, all;
  to.Set("to", ops::OnnxNumber(DType::kF32));
  all.Set("keepdims", int64_t{0});
  const std::string numbers = AddSimple("Cast", {body_inputs[2]}, body, to);
  const std::string sum = AddSimple("ReduceSum", {numbers}, body, all);
  return AddSimple("Less", {sum, AddConstant(Tensor::From<double>(DType::kF32, {}, {4.0 * draw_.Below(5)}))}, body);
}

std::optional<onnx::NodeProto> ModelGenerator::Repetition(Names* visible, int depth) {
  onnx::NodeProto node;
  node.set_op_type("Loop");
  node.add_input(TripCount());
  node.add_input(draw_.Chance(0.7) ? "" : Condition(*visible));
  onnx::GraphProto* body = AddSubgraph("body", &node);
  Names inputs = {NewName("i"), NewName("b")};
  values_.tensors[inputs[0]] = Tensor::From<int64_t>(DType::kI64, {}, {0});
  values_.tensors[inputs[1]] = Tensor::From<int64_t>(DType::kBool, {}, {1});
  for (int k = draw_.Below(3); k > 0; --k) {
    node.add_input(Existing(*visible));
    inputs.push_back(NewName("s"));
    values_.tensors[inputs.back()] = Of(node.input(node.input_size() - 1));
  }
  for (const std::string& name : inputs) body->add_input()->set_name(name);
  Names inside = *visible;
  inside.insert(inside.end(), inputs.begin(), inputs.end());
  Fill(body, &inside, depth, 3);
  Return(LoopCondition(inputs, body), DType::kBool, body);
  for (size_t k = 2; k < inputs.size(); ++k) {
    Return(NextState(inputs[k], /*may_grow=*/true, body), Of(inputs[k]).dtype(), body);
  }
  if (inputs.size() == 2 || draw_.Chance(0.6)) {
    const std::string& scanned = body->node(draw_.Below(body->node_size())).output(0);
    Return(scanned, Of(scanned).dtype(), body);
  }
  for (int o = 1; o < body->output_size(); ++o) node.add_output(NewName("v"));
  if (!Run(node)) return std::nullopt;
  return node;
}

std::optional<onnx::NodeProto> ModelGenerator::Scanning(Names* visible, int depth) {
  constexpr int64_t kMostSteps = 6;
  onnx::NodeProto node;
  node.set_op_type("Scan");
  const std::string scanned = Existing(*visible);
  const Shape shape = Of(scanned).shape();
  if (shape.empty()) return std::nullopt;
  const int64_t axis = draw_.Below(static_cast<int64_t>(shape.size()));
  if (shape[axis] < 1 || shape[axis] > kMostSteps) return std::nullopt;
  onnx::GraphProto* body = AddSubgraph("body", &node);
  Names inputs;
  for (int k = draw_.Below(2); k > 0; --k) {
    node.add_input(Existing(*visible));
    inputs.push_back(NewName("s"));
    values_.tensors[inputs.back()] = Of(node.input(node.input_size() - 1));
  }
  node.add_input(scanned);
  inputs.push_back(NewName("s"));
  Shape slice = shape;
  slice.erase(slice.begin() + axis);
  values_.tensors[inputs.back()] = DrawTensor(Of(scanned).dtype(), slice, draw_.Bits());
  for (const std::string& name : inputs) body->add_input()->set_name(name);
  Names inside = *visible;
  inside.insert(inside.end(), inputs.begin(), inputs.end());
  Fill(body, &inside, depth, 3);
  for (size_t k = 0; k + 1 < inputs.size(); ++k) {
    Return(NextState(inputs[k], /*may_grow=*/false, body), Of(inputs[k]).dtype(), body);
  }
  if (body->node_size() == 0) AddSimple("Identity", {inputs.back()}, body);
  const std::string& made = body->node(draw_.Below(body->node_size())).output(0);
  Return(made, Of(made).dtype(), body);
  AddAttribute("num_scan_inputs", int64_t{1}, &node);
  AddAttribute("scan_input_axes", std::vector<int64_t>{axis}, &node);
  if (draw_.Chance(0.3)) AddAttribute("scan_input_directions", std::vector<int64_t>{1}, &node);
  for (int o = 0; o < body->output_size(); ++o) node.add_output(NewName("v"));
  if (!Run(node)) return std::nullopt;
  return node;
}

}  // namespace fusion::fuzz
