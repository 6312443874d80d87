#include "compiler/onnx/canonical_graph.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/evaluate.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/meeting_extents.h"
#include "compiler/onnx/propagate_extents.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

// Limits of what folds while importing: shape arithmetic and small tables. Weights fold later (compiler/simplify).
constexpr ecg::FoldLimits kImportFolds = {.output_bytes = 64 << 10, .flops = 1e6};

class NodeContext : public ops::ImportContext {
 public:
  NodeContext(CanonicalGraph* graph, ecg::Node node, int opset)
      : graph_(graph), node_(std::move(node)), opset_(opset) {}

  int opset() const override { return opset_; }
  ecg::Node& node() override { return node_; }

  const ecg::Value* input(int i) const override {
    if (i < 0 || i >= static_cast<int>(node_.inputs.size()) || node_.inputs[i] == ecg::kNone) return nullptr;
    // Returns a copy, because the graph's values move as it grows and operators may hold the pointer across AddNode.
    return &handed_out_.emplace_back(graph_->graph.value(node_.inputs[i]));
  }

  ecg::ValueId AddConstant(Tensor tensor) override { return graph_->graph.AddConstant("", std::move(tensor)); }

  absl::StatusOr<std::vector<ecg::ValueId>> AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                    ecg::Attributes attrs, int num_outputs) override {
    ecg::Node node;
    node.op = op;
    node.name = node_.name;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    return graph_->Add(node, num_outputs);
  }

  void ReplaceWith(std::vector<ecg::ValueId> outputs) override { replacement_ = std::move(outputs); }

  const ecg::Value& value(ecg::ValueId id) const override { return graph_->graph.value(id); }
  const ecg::Node* producer(ecg::ValueId id) const override {
    const ecg::NodeId node = value(id).producer;
    return node == ecg::kNone ? nullptr : &graph_->graph.node(node);
  }
  bool IsDynamic(ecg::ValueId value, int dim) const override { return graph_->extents.Of(value, dim) != ecg::kNone; }
  using ops::ImportContext::IsDynamic;
  ecg::ValueId Extent(ecg::ValueId value, int dim) override { return graph_->Extent(value, dim); }
  absl::StatusOr<ecg::ValueId> WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> extents) override {
    return graph_->WithExtents(value, std::move(extents));
  }

  std::optional<std::vector<te::Interval>> Ranges(ecg::ValueId value) const override {
    const auto known = graph_->RangesOf(value);
    if (!known) return std::nullopt;
    constexpr double kFar = 1e18;
    std::vector<te::Interval> ranges;
    for (const te::ValueRange& element : *known) {
      if (!(element.lo >= -kFar && element.hi <= kFar) || !IsBounded(element)) return std::nullopt;
      ranges.push_back({static_cast<int64_t>(element.lo), static_cast<int64_t>(element.hi)});
    }
    return ranges;
  }

  bool MayNotRun() const override { return !graph_->conditions.empty(); }

  absl::StatusOr<std::vector<ecg::ValueId>> AddBounded(const std::string& op, std::vector<ecg::ValueId> inputs,
                                                       ecg::Attributes attrs, int num_outputs) override {
    ecg::Node node;
    node.op = op;
    node.name = node_.name;
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    return graph_->AddBounded(node, num_outputs);
  }
  const std::optional<std::vector<ecg::ValueId>>& replacement() const { return replacement_; }

 private:
  CanonicalGraph* graph_;
  ecg::Node node_;
  int opset_;
  std::optional<std::vector<ecg::ValueId>> replacement_;
  mutable std::deque<ecg::Value> handed_out_;
};

}  // namespace

absl::Status CanonicalGraph::CheckLimits(const ops::OpContext& context, const std::vector<ecg::ValueType>& types) {
  if (static_cast<int64_t>(graph.nodes().size()) >= kMaxNodes) {
    return absl::ResourceExhaustedError(absl::StrCat("the model has more than ", kMaxNodes, " nodes"));
  }
  for (const ecg::ValueType& type : types) {
    if (static_cast<int>(type.shape.size()) > kMaxRank) {
      return context.Error(absl::StrCat("output of rank ", type.shape.size(), ", at most ", kMaxRank, " is supported"));
    }
    auto bytes = CheckedSizeBytes(type.shape, type.dtype);
    if (!bytes.ok()) return context.Error(std::string(bytes.status().message()));
    activation_bytes_ += *bytes;
    if (activation_bytes_ > kMaxActivationBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          context.op, " ", Quoted(context.node_name), ": its output ", DTypeName(type.dtype), ShapeToString(type.shape),
          " brings the model's intermediate results above ", kMaxActivationBytes >> 30, " GiB"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ecg::Graph> CanonicalGraph::Isolate(const ecg::Node& node, int num_outputs) {
  if (ops::FindOp(node.op) == nullptr) {
    return absl::InternalError(absl::StrCat("operator ", node.op, " decomposes into one that does not exist"));
  }
  ecg::Graph alone;
  std::vector<ecg::ValueId> inputs;
  for (ecg::ValueId id : node.inputs) {
    if (id == ecg::kNone) {
      inputs.push_back(ecg::kNone);
      continue;
    }
    const ecg::Value& value = graph.value(id);
    inputs.push_back(value.constant.has_value() ? alone.AddConstant(value.name, *value.constant)
                                                : alone.AddInput(value.name, value.type));
  }
  std::vector<const ecg::Value*> input_values;
  input_values.reserve(inputs.size());
  for (ecg::ValueId id : inputs) input_values.push_back(id == ecg::kNone ? nullptr : &alone.value(id));
  const ops::OpContext context(node.op, node.name, node.attrs, std::move(input_values));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueType> types, ops::InferTypes(context, num_outputs));
  if (static_cast<int>(types.size()) != num_outputs) {
    return absl::InternalError(absl::StrCat(node.op, ": inferred ", types.size(), " outputs of ", num_outputs));
  }
  RETURN_IF_ERROR(CheckLimits(context, types));
  alone.AddNode(node.op, node.name, inputs, node.attrs, std::move(types));
  return alone;
}

std::optional<std::vector<ecg::ValueId>> CanonicalGraph::Fold(const ecg::Graph& alone,
                                                              const std::vector<std::string>& output_names) {
  if (ecg::OnlyWidens(alone, alone.node(0)) || !ecg::IsFoldable(alone, alone.node(0), kImportFolds))
    return std::nullopt;
  auto values = ecg::EvaluateNode(alone, alone.node(0));
  if (!values.ok()) return std::nullopt;
  std::vector<ecg::ValueId> outputs;
  for (size_t i = 0; i < values->size(); ++i) {
    outputs.push_back(graph.AddConstant(i < output_names.size() ? output_names[i] : "", std::move((*values)[i])));
  }
  return outputs;
}

std::vector<std::optional<te::TensorRanges>> CanonicalGraph::InferRanges(const ecg::Graph& alone,
                                                                         const ecg::Node& node) const {
  if (ops::IsLoopBoundary(node)) return {};  // what holds of one iteration does not hold of all
  bool known = false, small = true;
  std::map<ecg::ValueId, std::optional<te::TensorRanges>> inputs;  // keyed by the value in `alone`
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == ecg::kNone) continue;
    auto input = extents.RangesOf(node.inputs[i]);
    known = known || (input && !graph.value(node.inputs[i]).constant);
    inputs[alone.node(0).inputs[i]] = std::move(input);
  }
  for (ecg::ValueId id : alone.node(0).outputs) {
    small = small && NumElements(alone.value(id).type.shape) <= te::kMaxRangedElements;
  }
  if (!known || !small) return {};
  const auto lowered = ops::LowerNodes(alone, {0}, alone.node(0).outputs);
  if (!lowered.ok()) return {};
  std::vector<std::optional<te::TensorRanges>> arguments;
  for (te::TensorId id : lowered->program.inputs) {
    auto it = inputs.find(lowered->value_of_tensor[id]);
    arguments.push_back(it == inputs.end() ? std::nullopt : it->second);
  }
  return te::InferRanges(lowered->program, arguments);
}

absl::StatusOr<std::vector<ecg::ValueId>> CanonicalGraph::AddBounded(const ecg::Node& node, int num_outputs,
                                                                     const std::vector<std::string>& output_names) {
  ASSIGN_OR_RETURN(const ecg::Graph alone, Isolate(node, num_outputs));
  if (auto folded = Fold(alone, output_names)) return *std::move(folded);
  const std::vector<std::optional<te::TensorRanges>> known = InferRanges(alone, node);
  std::vector<ecg::ValueType> types;
  std::vector<Tensor> points;  // complete only if all elements of all outputs are known numbers, whatever the data are
  for (size_t o = 0; o < alone.node(0).outputs.size(); ++o) {
    types.push_back(alone.value(alone.node(0).outputs[o]).type);
    if (o != points.size() || o >= known.size() || !known[o] || IsFloat(types[o].dtype)) continue;
    if (!std::all_of(known[o]->begin(), known[o]->end(), [](const te::ValueRange& k) { return k.IsPoint(); })) continue;
    Tensor point(types[o].dtype, types[o].shape);
    for (size_t i = 0; i < known[o]->size(); ++i) point.SetDouble(static_cast<int64_t>(i), (*known[o])[i].lo);
    points.push_back(std::move(point));
  }
  std::vector<ecg::ValueId> outputs;
  if (points.size() == types.size()) {
    for (Tensor& point : points) outputs.push_back(graph.AddConstant("", std::move(point)));
    return outputs;
  }
  if (types.size() == 1 && known.size() == 1 && known[0] && types[0] == ecg::ValueType{DType::kI64, {}}) {
    // The number equals an extent that exists, which is then used: equal extents need one id.
    const te::ValueRange& number = (*known[0])[0];
    const bool plain = number.linear && number.constant == 0 && number.terms.size() == 1;
    if (plain && number.terms.begin()->second == 1) return std::vector<ecg::ValueId>{number.terms.begin()->first};
  }
  outputs =
      graph.node(graph.AddNode(node.op, node.name, node.inputs, node.attrs, std::move(types), output_names)).outputs;
  for (size_t o = 0; o < known.size(); ++o) {
    if (known[o]) extents.SetRanges(outputs[o], *known[o]);
  }
  return outputs;
}

absl::StatusOr<std::vector<ecg::ValueId>> CanonicalGraph::Add(const ecg::Node& node, int num_outputs,
                                                              const std::vector<std::string>& output_names) {
  const ops::OpDef* op = ops::FindOp(node.op);
  ecg::Node left = node;
  if (op != nullptr && op->dynamic) {
    left.outputs.assign(num_outputs, ecg::kNone);
    NodeContext context(this, std::move(left), kMaxOpset);
    RETURN_IF_ERROR(op->dynamic(context));
    if (context.replacement()) {
      if (static_cast<int>(context.replacement()->size()) >= num_outputs) return *context.replacement();
      return absl::InvalidArgumentError(
          absl::StrCat(node.op, " ", Quoted(node.name), ": has only ", context.replacement()->size(), " output(s)"));
    }
    left = context.node();
    left.outputs.clear();
  }
  const bool dynamic =
      std::any_of(left.inputs.begin(), left.inputs.end(), [&](ecg::ValueId id) { return extents.IsDynamic(id); });
  return dynamic ? AddDynamic(std::move(left), num_outputs, output_names) : AddBounded(left, num_outputs, output_names);
}

absl::StatusOr<std::vector<ecg::ValueId>> CanonicalGraph::AddDynamic(ecg::Node node, int num_outputs,
                                                                     const std::vector<std::string>& output_names) {
  if (num_outputs == 1 && decides_while_running) {
    NodeContext context(this, node, kMaxOpset);
    RETURN_IF_ERROR(MeetExtents(context, this, &node));
  }
  ASSIGN_OR_RETURN(const ecg::Graph alone, Isolate(node, num_outputs));
  std::vector<std::vector<ecg::ValueId>> dims;
  for (ecg::ValueId id : node.inputs) {
    dims.push_back(extents.IsDynamic(id) ? extents.Of(id) : std::vector<ecg::ValueId>());
  }
  ASSIGN_OR_RETURN(const Propagated propagated, PropagateExtents(alone, dims));
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (dims[i].empty() || propagated.masks[i].data() == nullptr) continue;
    NodeContext context(this, node, kMaxOpset);
    ASSIGN_OR_RETURN(node.inputs[i], ops::Masked(context, node.inputs[i], propagated.masks[i]));
  }
  ASSIGN_OR_RETURN(std::vector<ecg::ValueId> outputs, AddBounded(node, num_outputs, output_names));
  for (size_t o = 0; o < outputs.size(); ++o) {
    ASSIGN_OR_RETURN(outputs[o], WithExtents(outputs[o], propagated.outputs[o]));
  }
  return outputs;
}

ecg::ValueId CanonicalGraph::Extent(ecg::ValueId value, int dim) {
  const ecg::ValueId extent = extents.Of(value, dim);
  if (extent != ecg::kNone) return extent;
  return graph.AddConstant("", Tensor::From<int64_t>(DType::kI64, {}, {graph.value(value).type.shape[dim]}));
}

absl::StatusOr<ecg::ValueId> CanonicalGraph::WithExtents(ecg::ValueId value, std::vector<ecg::ValueId> dims) {
  NodeContext context(this, ecg::Node(), kMaxOpset);
  bool any = false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == ecg::kNone) continue;
    const int64_t bound = graph.value(value).type.shape[d];
    const te::ValueRange range = RangesOf(dims[d]).value_or(te::TensorRanges(1))[0];
    if (range.IsPoint()) {
      if (range.lo < static_cast<double>(bound)) {
        ASSIGN_OR_RETURN(
            value, ops::Cut(context, value, static_cast<int>(d), std::max<int64_t>(0, static_cast<int64_t>(range.lo))));
      }
      dims[d] = ecg::kNone;
    } else if (bound == 0 || range.lo >= static_cast<double>(bound)) {
      dims[d] = ecg::kNone;
    } else if (bound == 1) {
      // An axis with bound 1 would count as one that broadcasts, so the bound becomes 2.
      ecg::Attributes axis;
      axis.Set("axis", static_cast<int64_t>(d));
      ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> twice, context.AddBounded("Concat", {value, value}, axis, 1));
      value = twice[0];
    }
    any = any || dims[d] != ecg::kNone;
  }
  if (!any) return value;
  if (graph.value(value).producer == ecg::kNone || extents.IsDynamic(value)) {
    // Extents need a value of their own that is not a constant.
    const ecg::ValueType type = graph.value(value).type;
    value = graph.node(graph.AddNode("Identity", "", {value}, {}, {type})).outputs[0];
  }
  extents.Set(value, std::move(dims));
  return value;
}

absl::StatusOr<std::vector<ecg::ValueId>> CanonicalGraph::AddModelNode(ecg::Node node, int opset,
                                                                       const std::vector<std::string>& output_names) {
  const ops::OpDef* op = ops::FindOp(node.op);
  if (op == nullptr) return absl::InternalError(absl::StrCat("unknown operator ", node.op));
  const int num_outputs = static_cast<int>(output_names.size());
  if (op->num_outputs >= 0 && num_outputs > op->num_outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat(node.op, " ", Quoted(node.name), ": ", num_outputs, " outputs, it has at most ", op->num_outputs));
  }
  node.outputs.assign(output_names.size(), ecg::kNone);  // gives their number; Add gives the ids
  NodeContext context(this, std::move(node), opset);
  if (op->normalize) RETURN_IF_ERROR(op->normalize(context));
  if (!context.replacement().has_value()) return Add(context.node(), num_outputs, output_names);
  std::vector<ecg::ValueId> outputs = *context.replacement();
  if (static_cast<int>(outputs.size()) < num_outputs) {
    return absl::UnimplementedError(absl::StrCat(context.node().op, " ", Quoted(context.node().name),
                                                 ": only the first ", outputs.size(), " output(s) of ", num_outputs,
                                                 " are supported"));
  }
  return outputs;
}

}  // namespace fusion::onnx_import
