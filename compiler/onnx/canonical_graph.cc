#include "compiler/onnx/canonical_graph.h"

#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/evaluate.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

// What folds while importing: shape arithmetic and small tables. Weights fold later (compiler/simplify).
constexpr ecg::FoldLimits kImportFolds = {.output_bytes = 64 << 10, .flops = 1e6};

class NodeContext : public ops::ImportContext {
 public:
  NodeContext(CanonicalGraph* graph, ecg::Node node, int opset)
      : graph_(graph), node_(std::move(node)), opset_(opset) {}

  int opset() const override { return opset_; }
  ecg::Node& node() override { return node_; }

  const ecg::Value* input(int i) const override {
    if (i < 0 || i >= static_cast<int>(node_.inputs.size()) || node_.inputs[i] == ecg::kNone) return nullptr;
    // A copy, since the graph's values move as it grows; operators may hold the pointer across AddNode.
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

absl::StatusOr<std::vector<ecg::ValueId>> CanonicalGraph::Add(const ecg::Node& node, int num_outputs,
                                                              const std::vector<std::string>& output_names) {
  if (ops::FindOp(node.op) == nullptr) {
    return absl::InternalError(absl::StrCat("operator ", node.op, " decomposes into one that does not exist"));
  }
  // The node alone, to infer and perhaps evaluate it before the real graph grows.
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
  for (ecg::ValueId id : inputs) input_values.push_back(id == ecg::kNone ? nullptr : &alone.value(id));
  const ops::OpContext context(node.op, node.name, node.attrs, std::move(input_values));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueType> types, ops::InferTypes(context, num_outputs));
  if (static_cast<int>(types.size()) != num_outputs) {
    return absl::InternalError(absl::StrCat(node.op, ": inferred ", types.size(), " outputs of ", num_outputs));
  }
  RETURN_IF_ERROR(CheckLimits(context, types));

  const ecg::NodeId id = alone.AddNode(node.op, node.name, inputs, node.attrs, types);
  if (ecg::IsFoldable(alone, alone.node(id), kImportFolds)) {
    auto values = ecg::EvaluateNode(alone, alone.node(id));
    if (values.ok()) {
      std::vector<ecg::ValueId> outputs;
      for (size_t i = 0; i < values->size(); ++i) {
        outputs.push_back(graph.AddConstant(i < output_names.size() ? output_names[i] : "", std::move((*values)[i])));
      }
      return outputs;
    }
  }
  return graph.node(graph.AddNode(node.op, node.name, node.inputs, node.attrs, std::move(types), output_names)).outputs;
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
  node.outputs.assign(output_names.size(), ecg::kNone);  // how many; their ids come with Add
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
