#include "tests/fuzz/graphs/random_model.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/graphs/eager_values.h"
#include "tests/fuzz/graphs/model_generator.h"
#include "tests/fuzz/graphs/model_run.h"
#include "tests/fuzz/graphs/summary.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

using ops::InputRole;
using ops::OpDef;

constexpr int kProposals = 30;  // of one operator
constexpr int kMaxInputs = 8;   // approximately, for a model
constexpr int kDeepest = 2;     // nesting of subgraphs
constexpr double kControlFlow = 0.12, kDataDependent = 0.3, kLists = 0.12;
constexpr const char* kControlOps[] = {"If", "Loop", "Scan"};

}  // namespace

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

ModelGenerator::ModelGenerator(uint64_t seed, const GraphLimits& limits)
    : draw_(seed, limits), limits_(limits), model_(EmptyModel()) {
  for (const OpDef* def : ops::AllOps()) {
    if (def->infer || def->normalize) ops_.push_back(def);
  }
}

std::string ModelGenerator::NewName(const std::string& kind) { return absl::StrCat(kind, count_++); }

DrawnModel ModelGenerator::Make() {
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

std::string ModelGenerator::AddInput(DType dtype, Shape shape, const std::string& suffix, Names* visible) {
  draw_.Limit(&shape);
  const std::string name = absl::StrCat(NewName("x"), suffix);
  *model_.mutable_graph()->add_input() = TypeProto(name, dtype, shape);
  values_.tensors[name] = DrawInput(name, dtype, shape);
  if (visible != nullptr) visible->push_back(name);
  return name;
}

std::string ModelGenerator::AddConstant(const Tensor& tensor) {
  const std::string name = NewName("c");
  *model_.mutable_graph()->add_initializer() = ToProto(name, tensor);
  values_.tensors[name] = tensor;
  return name;
}

std::string ModelGenerator::Fresh(DType dtype, Shape shape, Names* visible) {
  draw_.Limit(&shape);
  if (draw_.Chance(model_.graph().input_size() < kMaxInputs ? 0.4 : 0.9)) {
    return AddConstant(DrawTensor(dtype, shape, draw_.Bits()));
  }
  return AddInput(dtype, shape, "", visible);
}

std::string ModelGenerator::Existing(const Names& visible) {
  const auto size = static_cast<int64_t>(visible.size());
  return visible[size - 1 - (draw_.Chance(0.5) ? draw_.Below(std::min<int64_t>(size, 4)) : draw_.Below(size))];
}

std::string ModelGenerator::DataOperand(const std::string& first, Names* visible) {
  if (!visible->empty() && draw_.Chance(first.empty() ? 0.95 : 0.5)) return Existing(*visible);
  if (first.empty()) return Fresh(draw_.DrawType(), draw_.AnyShape(), visible);
  const DType dtype = draw_.Chance(0.8) ? Of(first).dtype() : draw_.Chance(0.6) ? DType::kI64 : draw_.DrawType();
  return Fresh(dtype, draw_.RelatedShape(Of(first).shape()), visible);
}

std::string ModelGenerator::FittingOperand(const FittingSpec& spec, Names* visible) {
  if (spec.absent) return "";
  if (spec.value) return AddConstant(*spec.value);
  if (!spec.suffix.empty()) return AddInput(spec.type.dtype, spec.type.shape, spec.suffix, nullptr);
  for (const std::string& name : *visible) {
    const Tensor& value = Of(name);
    if (value.dtype() == spec.type.dtype && value.shape() == spec.type.shape && draw_.Chance(0.5)) return name;
  }
  return Fresh(spec.type.dtype, spec.type.shape, visible);
}

void ModelGenerator::Operands(const OpDef& def, Names* visible, onnx::NodeProto* node) {
  ecg::Attributes attrs;
  std::optional<Fitting> fitting;
  if (draw_.Chance(0.7)) fitting = FittingOperands(def.name, &draw_);
  int64_t rank = 2;
  if (fitting) {
    for (const FittingSpec& spec : fitting->operands) node->add_input(FittingOperand(spec, visible));
    // The first operand is not always a fresh one: it may be any value whose shape and type fit.
    attrs = fitting->attrs;
    if (node->input_size() > 0 && !node->input(0).empty())
      rank = static_cast<int64_t>(Of(node->input(0)).shape().size());
  } else {
    // The registry's form of an operator with dynamic extents may take one more input than the model's.
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

bool ModelGenerator::Run(const onnx::NodeProto& node) {
  absl::StatusOr<EagerValues> results = RunOne(node, values_);
  if (!results.ok()) return false;
  for (const auto& [name, tensor] : results->tensors) {
    if (tensor.num_elements() > limits_.max_elements || static_cast<int>(tensor.shape().size()) > limits_.max_rank) {
      return false;
    }
    if (tensor.num_elements() == 0 && !draw_.Chance(0.3)) return false;
  }
  values_.Take(*std::move(results));
  return true;
}

std::optional<onnx::NodeProto> ModelGenerator::Operator(Names* visible) {
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

bool ModelGenerator::AddTo(onnx::GraphProto* graph, Names* visible, int depth) {
  std::optional<onnx::NodeProto> node;
  if (depth < kDeepest && draw_.Chance(kControlFlow)) {
    node = ControlFlow(visible, depth);
  } else {
    node = depth == 0 && draw_.Chance(kLists) ? ListNode(visible) : Operator(visible);
  }
  if (!node) return false;
  for (const std::string& name : node->output()) {
    if (values_.tensors.count(name) > 0) visible->push_back(name);
  }
  *graph->add_node() = *std::move(node);
  return true;
}

bool ModelGenerator::AddTopNode(Names* visible) {
  const onnx::ModelProto before = model_;
  const Names visible_before = *visible, lists_before = lists_;
  onnx::GraphProto added;  // kept apart from the model, which receives the values that the node's operands add
  if (!AddTo(&added, visible, 0)) {
    model_ = before;
    *visible = visible_before;
    lists_ = lists_before;
    return false;
  }
  *model_.mutable_graph()->add_node() = added.node(0);
  SetOutputs();
  const auto imported = ImportModel(model_);
  if (imported.ok()) return true;
  ++left_out_[Reason(std::string(imported.status().message()))];
  model_ = before;
  *visible = visible_before;
  lists_ = lists_before;
  return false;
}

void ModelGenerator::SetOutputs() {
  onnx::GraphProto* graph = model_.mutable_graph();
  std::set<std::string> read;
  for (const auto& node : graph->node()) {
    for (const std::string& name : Reads(node)) read.insert(name);
  }
  graph->clear_output();
  for (const auto& node : graph->node()) {
    for (const std::string& name : node.output()) {
      if (values_.tensors.count(name) == 0) continue;
      const bool chosen = Of(name).size_bytes() % 7 == 3;
      if (read.count(name) == 0 || chosen) graph->add_output()->set_name(name);
    }
  }
}

std::string ModelGenerator::AddSimple(const std::string& op, const std::vector<std::string>& inputs,
                                      onnx::GraphProto* graph, const ecg::Attributes& attrs) {
  onnx::NodeProto* node = graph->add_node();
  node->set_op_type(op);
  for (const std::string& name : inputs) node->add_input(name);
  for (const auto& [name, value] : attrs.all()) AddAttribute(name, value, node);
  const std::string name = NewName("v");
  node->add_output(name);
  const auto results = RunNode(*node, values_.tensors);
  values_.tensors[name] = results.ok() ? results->at(name) : Tensor(DType::kF32, {});
  return name;
}

DrawnModel RandomModel(uint64_t seed, const GraphLimits& limits) {
  GraphLimits small = limits;
  small.max_nodes = std::max(small.min_nodes, small.max_nodes / 2);
  return ModelGenerator(seed, small).Make();
}

void CountOperators(const onnx::GraphProto& graph, std::map<std::string, int>* counts) {
  if (counts->count(kControlOps[0]) == 0) {
    for (const OpDef* def : ops::AllOps()) counts->emplace(def->name, 0);
    for (const char* op : kControlOps) counts->emplace(op, 0);
    for (const std::string& op : ListOperators()) counts->emplace(op, 0);
  }
  for (const auto& node : graph.node()) {
    ++(*counts)[node.domain().empty() ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type())];
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) CountOperators(attribute.g(), counts);
    }
  }
}

}  // namespace fusion::fuzz
