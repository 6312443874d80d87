#include "tests/fuzz/graphs/random_model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/onnx_dtype.h"
#include "compiler/ops/op_def.h"
#include "tests/fuzz/graphs/drawing.h"
#include "tests/fuzz/graphs/fitting.h"
#include "tests/fuzz/graphs/model_run.h"
#include "tests/fuzz/graphs/summary.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

using ops::InputRole;
using ops::OpDef;

constexpr int kProposals = 30;  // of one operator
constexpr int kMaxInputs = 8;   // of a model, roughly
constexpr int kDeepest = 2;     // subgraphs in subgraphs
constexpr double kControlFlow = 0.12, kDataDependent = 0.3;
constexpr const char* kControlOps[] = {"If", "Loop", "Scan"};

void AddAttribute(const std::string& name, const ecg::Attribute& value, onnx::NodeProto* node) {
  onnx::AttributeProto* a = node->add_attribute();
  a->set_name(name);
  if (const auto* i = std::get_if<int64_t>(&value)) {
    a->set_type(onnx::AttributeProto::INT);
    a->set_i(*i);
  } else if (const auto* f = std::get_if<double>(&value)) {
    a->set_type(onnx::AttributeProto::FLOAT);
    a->set_f(static_cast<float>(*f));
  } else if (const auto* s = std::get_if<std::string>(&value)) {
    a->set_type(onnx::AttributeProto::STRING);
    a->set_s(*s);
  } else if (const auto* is = std::get_if<std::vector<int64_t>>(&value)) {
    a->set_type(onnx::AttributeProto::INTS);
    for (const int64_t i : *is) a->add_ints(i);
  } else if (const auto* t = std::get_if<Tensor>(&value)) {
    a->set_type(onnx::AttributeProto::TENSOR);
    *a->mutable_t() = ToProto("", *t);
  }
}

onnx::GraphProto* AddSubgraph(const std::string& name, onnx::NodeProto* node) {
  onnx::AttributeProto* a = node->add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::GRAPH);
  a->mutable_g()->set_name(name);
  return a->mutable_g();
}

class Generator {
 public:
  Generator(uint64_t seed, const GraphLimits& limits) : draw_(seed, limits), limits_(limits), model_(EmptyModel()) {
    for (const OpDef* def : ops::AllOps()) {
      if (def->infer || def->normalize) ops_.push_back(def);
    }
  }

  DrawnModel Make() {
    const int wanted = draw_.NodeCount();
    Names visible;
    for (int n = 1 + draw_.Below(3); n > 0; --n) AddInput(draw_.DrawType(), draw_.AnyShape(), "", &visible);
    for (int failures = 0; model_.graph().node_size() < wanted && failures < 3 * wanted;) {
      if (!AddTopNode(&visible)) ++failures;
    }
    DrawnModel drawn;
    drawn.left_out = std::move(left_out_);
    SetOutputs();
    if (auto graph = ImportModel(model_); graph.ok()) drawn.graph = *std::move(graph);
    drawn.model = std::move(model_);
    return drawn;
  }

 private:
  using Names = std::vector<std::string>;  // of the values that a node may read, in the order of their making

  std::string NewName(const std::string& kind) { return absl::StrCat(kind, count_++); }
  const Tensor& Of(const std::string& name) const { return values_.at(name); }

  // ---- operands
  std::string AddInput(DType dtype, Shape shape, const std::string& suffix, Names* visible) {
    draw_.Limit(&shape);
    const std::string name = absl::StrCat(NewName("x"), suffix);
    *model_.mutable_graph()->add_input() = TypeProto(name, dtype, shape);
    values_[name] = DrawInput(name, dtype, shape);
    if (visible != nullptr) visible->push_back(name);
    return name;
  }

  std::string AddConstant(const Tensor& tensor) {
    const std::string name = NewName("c");
    *model_.mutable_graph()->add_initializer() = ToProto(name, tensor);
    values_[name] = tensor;
    return name;
  }

  std::string Fresh(DType dtype, Shape shape, Names* visible) {
    draw_.Limit(&shape);
    if (draw_.Chance(model_.graph().input_size() < kMaxInputs ? 0.4 : 0.9)) {
      return AddConstant(DrawTensor(dtype, shape, draw_.Bits()));
    }
    return AddInput(dtype, shape, "", visible);
  }

  std::string Existing(const Names& visible) {
    const auto size = static_cast<int64_t>(visible.size());
    return visible[size - 1 - (draw_.Chance(0.5) ? draw_.Below(std::min<int64_t>(size, 4)) : draw_.Below(size))];
  }

  std::string DataOperand(const std::string& first, Names* visible) {
    if (!visible->empty() && draw_.Chance(first.empty() ? 0.95 : 0.5)) return Existing(*visible);
    if (first.empty()) return Fresh(draw_.DrawType(), draw_.AnyShape(), visible);
    const DType dtype = draw_.Chance(0.8) ? Of(first).dtype() : draw_.Chance(0.6) ? DType::kI64 : draw_.DrawType();
    return Fresh(dtype, draw_.RelatedShape(Of(first).shape()), visible);
  }

  std::string FittingOperand(const FittingSpec& spec, Names* visible) {
    if (spec.absent) return "";
    if (spec.value) return AddConstant(*spec.value);
    if (!spec.suffix.empty()) return AddInput(spec.type.dtype, spec.type.shape, spec.suffix, nullptr);
    for (const std::string& name : *visible) {
      const Tensor& value = Of(name);
      if (value.dtype() == spec.type.dtype && value.shape() == spec.type.shape && draw_.Chance(0.5)) return name;
    }
    return Fresh(spec.type.dtype, spec.type.shape, visible);
  }

  // Operands and attributes of one proposal. False: the operator takes no such operand at all.
  void Operands(const OpDef& def, Names* visible, onnx::NodeProto* node) {
    ecg::Attributes attrs;
    std::optional<Fitting> fitting;
    if (draw_.Chance(0.7)) fitting = FittingOperands(def.name, &draw_);
    int64_t rank = 2;
    if (fitting) {
      for (const FittingSpec& spec : fitting->operands) node->add_input(FittingOperand(spec, visible));
      // Not always a fresh one: the first operand may have come from anywhere if its rank fits.
      attrs = fitting->attrs;
      if (node->input_size() > 0 && !node->input(0).empty())
        rank = static_cast<int64_t>(Of(node->input(0)).shape().size());
    } else {
      // The registry's form of an operator with dynamic extents may take more than the model's.
      const int least = std::max(0, def.dynamic ? def.min_inputs - 1 : def.min_inputs);
      const int count =
          def.max_inputs < 0 ? least + draw_.Below(3) : static_cast<int>(draw_.Between(least, def.max_inputs));
      int64_t some = 1;
      DType scalar_type = draw_.DrawType();
      for (int i = 0; i < count; ++i) {
        const std::string first = i > 0 ? node->input(0) : "";
        const auto role = i < static_cast<int>(def.roles.size()) ? def.roles[i] : InputRole::kData;
        if (i >= def.min_inputs && i + 1 < count && draw_.Chance(0.4)) {
          node->add_input("");
          continue;
        }
        const Shape shape = first.empty() ? draw_.AnyShape() : Of(first).shape();
        const std::optional<Tensor> value = draw_.RoleValue(role, shape, some, scalar_type);
        node->add_input(value ? AddConstant(*value) : DataOperand(first, visible));
        if (i > 0) continue;
        rank = static_cast<int64_t>(Of(node->input(0)).shape().size());
        some = draw_.Chance(0.4) ? std::max<int64_t>(rank, 1) : draw_.Between(1, std::max<int64_t>(rank, 1));
        if (draw_.Chance(0.8)) scalar_type = Of(node->input(0)).dtype();
        if (draw_.Chance(0.1)) scalar_type = DType::kI64;
      }
    }
    for (const ops::AttrSpec& spec : def.attrs) {
      if (attrs.Has(spec.name) || (fitting && draw_.Chance(0.6))) continue;
      if (!spec.required && draw_.Chance(0.6)) continue;
      if (auto value = draw_.DrawAttribute(spec, rank)) attrs.Set(spec.name, *std::move(value));
    }
    for (const auto& [name, value] : attrs.all()) AddAttribute(name, value, node);
    const int outputs = def.num_outputs < 0 ? 1 + draw_.Below(4) : 1 + draw_.Below(std::max(1, def.num_outputs));
    for (int o = 0; o < outputs; ++o) node->add_output(NewName("v"));
  }

  // ---- nodes
  // The node's results become known. False: they are too large, or it does not fit.
  bool Run(const onnx::NodeProto& node) {
    const auto results = RunNode(node, values_);
    if (!results.ok()) return false;
    for (const auto& [name, tensor] : *results) {
      if (tensor.num_elements() > limits_.max_elements || static_cast<int>(tensor.shape().size()) > limits_.max_rank) {
        return false;
      }
      if (tensor.num_elements() == 0 && !draw_.Chance(0.3)) return false;
    }
    for (const auto& [name, tensor] : *results) values_[name] = tensor;
    return true;
  }

  // A registry operator that runs.
  std::optional<onnx::NodeProto> Operator(Names* visible) {
    const bool data = draw_.Chance(kDataDependent);
    const OpDef* def = data ? ops::FindOp(draw_.OneOf(DataDependentOps())) : draw_.OneOf(ops_);
    for (int attempt = 0; attempt < kProposals; ++attempt) {
      const onnx::ModelProto before = model_;
      const Names visible_before = *visible;
      onnx::NodeProto node;
      if (absl::StartsWith(def->name, "com.microsoft.")) {
        node.set_domain("com.microsoft");
        node.set_op_type(def->name.substr(std::string("com.microsoft.").size()));
      } else {
        node.set_op_type(def->name);
      }
      Operands(*def, visible, &node);
      if (Run(node)) return node;
      model_ = before;
      *visible = visible_before;
    }
    return std::nullopt;
  }

  bool AddTo(onnx::GraphProto* graph, Names* visible, int depth) {
    std::optional<onnx::NodeProto> node =
        depth < kDeepest && draw_.Chance(kControlFlow) ? ControlFlow(visible, depth) : Operator(visible);
    if (!node) return false;
    for (const std::string& name : node->output()) visible->push_back(name);
    *graph->add_node() = *std::move(node);
    return true;
  }

  bool AddTopNode(Names* visible) {
    const onnx::ModelProto before = model_;
    const Names visible_before = *visible;
    onnx::GraphProto added;  // apart from the model, which takes what the node's operands add
    if (!AddTo(&added, visible, 0)) {
      model_ = before;
      *visible = visible_before;
      return false;
    }
    *model_.mutable_graph()->add_node() = added.node(0);
    SetOutputs();
    const auto imported = ImportModel(model_);
    if (imported.ok()) return true;
    ++left_out_[Reason(std::string(imported.status().message()))];
    model_ = before;
    *visible = visible_before;
    return false;
  }

  // What nothing reads, and a few others.
  void SetOutputs() {
    onnx::GraphProto* graph = model_.mutable_graph();
    std::set<std::string> read;
    for (const auto& node : graph->node()) {
      for (const std::string& name : Reads(node)) read.insert(name);
    }
    graph->clear_output();
    for (const auto& node : graph->node()) {
      for (const std::string& name : node.output()) {
        const bool chosen = values_[name].size_bytes() % 7 == 3;
        if (read.count(name) == 0 || chosen) graph->add_output()->set_name(name);
      }
    }
  }

  // ---- control flow
  std::optional<onnx::NodeProto> ControlFlow(Names* visible, int depth) {
    switch (draw_.Below(3)) {
      case 0:
        return Branches(visible, depth);
      case 1:
        return Repetition(visible, depth);
      default:
        return Scanning(visible, depth);
    }
  }

  void Fill(onnx::GraphProto* graph, Names* inside, int depth, int most) {
    for (int n = draw_.Below(most + 1); n > 0; --n) AddTo(graph, inside, depth + 1);
  }

  static void Return(const std::string& name, DType dtype, onnx::GraphProto* graph) {
    onnx::ValueInfoProto* info = graph->add_output();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(ops::OnnxNumber(dtype)));
  }

  std::string AddSimple(const std::string& op, const std::vector<std::string>& inputs, onnx::GraphProto* graph,
                        const ecg::Attributes& attrs = {}) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type(op);
    for (const std::string& name : inputs) node->add_input(name);
    for (const auto& [name, value] : attrs.all()) AddAttribute(name, value, node);
    const std::string name = NewName("v");
    node->add_output(name);
    const auto results = RunNode(*node, values_);
    values_[name] = results.ok() ? results->at(name) : Tensor(DType::kF32, {});
    return name;
  }

  // A value that the subgraph has made, of this type and rank if there is one, else a copy of a constant.
  std::string Made(const onnx::GraphProto& graph, DType dtype, const Shape& shape, bool same_shape) {
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

  std::string Condition(const Names& visible) {
    for (const std::string& name : visible) {
      const Tensor& value = Of(name);
      if (value.dtype() == DType::kBool && value.shape().empty() && draw_.Chance(0.6)) return name;
    }
    return draw_.Chance(0.1) ? AddConstant(DrawTensor(DType::kBool, {}, draw_.Bits()))
                             : AddInput(DType::kBool, {}, "_below2", nullptr);
  }

  std::optional<onnx::NodeProto> Branches(Names* visible, int depth) {
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

  std::string TripCount() {
    const int64_t most = draw_.Between(1, 4);
    if (draw_.Chance(0.4)) return AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(0, most)}));
    // Bounded by a Min, as exporters of beam searches write it.
    const std::string count = AddInput(DType::kI64, {}, absl::StrCat("_below", most + 1), nullptr);
    const std::string bound = AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {most}));
    return AddSimple("Min", {count, bound}, model_.mutable_graph());
  }

  // The state after an iteration: of the type and shape that it had, unless it grows.
  std::string NextState(const std::string& state, bool may_grow, onnx::GraphProto* body) {
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

  std::string LoopCondition(const Names& body_inputs, onnx::GraphProto* body) {
    if (draw_.Chance(0.5)) return AddSimple("Identity", {body_inputs[1]}, body);
    if (draw_.Chance(0.4) || body_inputs.size() < 3) {
      const std::string last = AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {draw_.Between(0, 3)}));
      return AddSimple("Less", {body_inputs[0], last}, body);
    }
    // Known only when the loop runs.
    ecg::Attributes to, all;
    to.Set("to", ops::OnnxNumber(DType::kF32));
    all.Set("keepdims", int64_t{0});
    const std::string numbers = AddSimple("Cast", {body_inputs[2]}, body, to);
    const std::string sum = AddSimple("ReduceSum", {numbers}, body, all);
    return AddSimple("Less", {sum, AddConstant(Tensor::From<double>(DType::kF32, {}, {4.0 * draw_.Below(5)}))}, body);
  }

  std::optional<onnx::NodeProto> Repetition(Names* visible, int depth) {
    onnx::NodeProto node;
    node.set_op_type("Loop");
    node.add_input(TripCount());
    node.add_input(draw_.Chance(0.7) ? "" : Condition(*visible));
    onnx::GraphProto* body = AddSubgraph("body", &node);
    Names inputs = {NewName("i"), NewName("b")};
    values_[inputs[0]] = Tensor::From<int64_t>(DType::kI64, {}, {0});
    values_[inputs[1]] = Tensor::From<int64_t>(DType::kBool, {}, {1});
    for (int k = draw_.Below(3); k > 0; --k) {
      node.add_input(Existing(*visible));
      inputs.push_back(NewName("s"));
      values_[inputs.back()] = Of(node.input(node.input_size() - 1));
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

  std::optional<onnx::NodeProto> Scanning(Names* visible, int depth) {
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
      values_[inputs.back()] = Of(node.input(node.input_size() - 1));
    }
    node.add_input(scanned);
    inputs.push_back(NewName("s"));
    Shape slice = shape;
    slice.erase(slice.begin() + axis);
    values_[inputs.back()] = DrawTensor(Of(scanned).dtype(), slice, draw_.Bits());
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

  Drawing draw_;
  const GraphLimits limits_;
  std::vector<const OpDef*> ops_;
  onnx::ModelProto model_;
  TensorsByName values_;  // of every name, also of those in bodies, there of one iteration
  int count_ = 0;
  std::map<std::string, int> left_out_;
};

}  // namespace

DrawnModel RandomModel(uint64_t seed, const GraphLimits& limits) {
  GraphLimits small = limits;
  small.max_nodes = std::max(small.min_nodes, small.max_nodes / 2);
  return Generator(seed, small).Make();
}

void CountOperators(const onnx::GraphProto& graph, std::map<std::string, int>* counts) {
  if (counts->count(kControlOps[0]) == 0) {
    for (const OpDef* def : ops::AllOps()) counts->emplace(def->name, 0);
    for (const char* op : kControlOps) counts->emplace(op, 0);
  }
  for (const auto& node : graph.node()) {
    ++(*counts)[node.domain().empty() ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type())];
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) CountOperators(attribute.g(), counts);
    }
  }
}

}  // namespace fusion::fuzz
