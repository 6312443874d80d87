#include "compiler/onnx/graph_importer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/rounded.h"
#include "compiler/onnx/attribute_import.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/structural/structural_op.h"
#include "compiler/ops/registry/refused.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

std::string CanonicalName(const onnx::NodeProto& node) {
  const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
  return standard ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type());
}

std::vector<std::string> OutputNames(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.output().begin(), node.output().end());
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

}  // namespace

GraphImporter::GraphImporter(onnx::ModelProto* model, std::map<std::string, int64_t> opsets, ExternalFiles* files)
    : functions_(*model), files_(files), opsets_(std::move(opsets)) {}

const ImportedValue* GraphImporter::Find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (auto it = scope->find(name); it != scope->end()) return &it->second;
  }
  return nullptr;
}

int GraphImporter::OpsetOf(const onnx::NodeProto& proto) const {
  auto opset = opsets_.find(proto.domain() == "ai.onnx" ? "" : proto.domain());
  return opset == opsets_.end() ? 1 : static_cast<int>(opset->second);
}

absl::Status GraphImporter::Charge(int64_t steps) {
  if (steps > kMaxInlineSteps - steps_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("control flow and functions are unrolled while importing, and come to more than ", kMaxInlineSteps,
                     " operators"));
  }
  steps_ += steps;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ImportedValue>> GraphImporter::Inline(onnx::GraphProto* graph, const Bindings& bound,
                                                                 const std::string& label) {
  if (depth_ >= kMaxInlineDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("graphs and functions are nested more than ", kMaxInlineDepth, " deep"));
  }
  if (depth_ > 0) RETURN_IF_ERROR(Charge(1 + graph->node_size()));
  const std::string outer_label = std::exchange(label_, label_ + label);
  scopes_.emplace_back();
  ++depth_;
  auto outputs = [&]() -> absl::StatusOr<std::vector<ImportedValue>> {
    for (const auto& [name, value] : bound) scopes_.back()[name] = value;
    RETURN_IF_ERROR(AddInitializers(graph));
    ASSIGN_OR_RETURN(const std::vector<int>* order, OrderOf(*graph));
    for (int id : *order) RETURN_IF_ERROR(ImportNode(graph->mutable_node(id)));
    std::vector<ImportedValue> values;
    for (const auto& output : graph->output()) {
      const ImportedValue* value = Find(output.name());
      if (value == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("output ", Quoted(output.name()), " is computed by no node"));
      }
      values.push_back(*value);
    }
    return values;
  }();
  --depth_;
  scopes_.pop_back();
  label_ = outer_label;
  return outputs;
}

absl::Status GraphImporter::AddInitializers(onnx::GraphProto* graph) {
  if (graph->sparse_initializer_size() > 0) return absl::UnimplementedError("sparse initializers are not supported");
  for (auto& proto : *graph->mutable_initializer()) {
    const std::string name = proto.name();
    auto [known, fresh] = initializers_.emplace(&proto, ecg::kNone);
    if (fresh) {
      ASSIGN_OR_RETURN(Tensor tensor, TakeTensor(&proto, absl::StrCat("initializer ", Quoted(name)), files_));
      known->second = canonical_.graph.AddConstant(label_ + name, std::move(tensor));
    }
    if (!scopes_.back().emplace(name, ImportedValue::Tensor(known->second)).second) {
      return absl::InvalidArgumentError(absl::StrCat("initializer ", Quoted(name), " is defined twice"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<int>*> GraphImporter::OrderOf(const onnx::GraphProto& graph) {
  auto it = orders_.find(&graph);
  if (it == orders_.end()) {
    ASSIGN_OR_RETURN(std::vector<int> order,
                     NeededNodesInOrder(graph, [&](const std::string& name) { return Find(name) != nullptr; }));
    RETURN_IF_ERROR(CheckSupported(graph, order));
    it = orders_.emplace(&graph, std::move(order)).first;
  }
  return &it->second;
}

namespace {

// May a model name it?
bool IsOperator(const std::string& name) {
  const ops::OpDef* def = ops::FindOp(name);
  return def != nullptr && !def->internal;
}

}  // namespace

absl::Status GraphImporter::CheckSupported(const onnx::GraphProto& graph, const std::vector<int>& order) {
  std::map<std::string, std::pair<int, std::string>> unsupported;  // operator → count, one node
  const auto check = [&](const auto& self, const onnx::NodeProto& node) -> void {
    // Checks the body of a loop, too. Which branches of an If are needed is known only later.
    for (const auto& attribute : node.attribute()) {
      if (attribute.name() != "body" || !attribute.has_g()) continue;
      for (const auto& inner : attribute.g().node()) self(self, inner);
    }
    const std::string op = CanonicalName(node);
    if (FindStructural(op) != nullptr || IsOperator(op)) return;
    if (functions_.Find(node.domain(), node.op_type()) != nullptr) return;
    auto& entry = unsupported[op];
    if (entry.first++ == 0) entry.second = NodeName(node);
  };
  for (int id : order) check(check, graph.node(id));
  if (unsupported.empty()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "unsupported operator(s): ", absl::StrJoin(unsupported, "; ", [](std::string* out, const auto& entry) {
        absl::StrAppend(out, Quoted(entry.first), " (", entry.second.first, "×, e.g. node ",
                        Quoted(entry.second.second), ")");
        const std::string reason = ops::RefusalReason(entry.first);
        if (!reason.empty()) absl::StrAppend(out, ": ", reason);
      })));
}

absl::Status GraphImporter::ImportNode(onnx::NodeProto* proto) {
  const std::string op = CanonicalName(*proto);
  const std::vector<std::string> names = OutputNames(*proto);
  std::vector<ImportedValue> outputs;
  const std::string outer_name = std::exchange(node_name_, label_ + NodeName(*proto));
  if (const StructuralImport import = FindStructural(op)) {
    StructuralNode node{proto, NodeTitle(*proto), OpsetOf(*proto), {}};
    for (const std::string& input : proto->input()) {
      const ImportedValue* value = input.empty() ? nullptr : Find(input);
      node.inputs.push_back(value == nullptr ? ImportedValue() : *value);
      RETURN_IF_ERROR(Charge(static_cast<int64_t>(node.inputs.back().elements.size())));
    }
    ASSIGN_OR_RETURN(outputs, import(*this, node));
    if (outputs.size() < names.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(node.title, ": has ", names.size(), " outputs, it makes ", outputs.size()));
    }
  } else if (IsOperator(op)) {
    ASSIGN_OR_RETURN(outputs, ImportOperator(proto, op, names));
  } else {
    auto results = CallFunction(*proto);
    if (!results.ok()) return Annotate(results.status(), NodeTitle(*proto));
    outputs = *std::move(results);
  }
  node_name_ = outer_name;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].empty()) scopes_.back()[names[i]] = std::move(outputs[i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ImportedValue>> GraphImporter::ImportOperator(onnx::NodeProto* proto, const std::string& op,
                                                                         const std::vector<std::string>& output_names) {
  ecg::Node node;
  node.op = op;
  node.name = node_name_;
  for (const std::string& input : proto->input()) {
    const ImportedValue* value = input.empty() ? nullptr : Find(input);
    if (value != nullptr && value->kind != ImportedValue::Kind::kTensor) {
      return absl::InvalidArgumentError(absl::StrCat(NodeTitle(*proto), ": its input ", Quoted(input), " is ",
                                                     KindName(value->kind), ", it takes tensors"));
    }
    node.inputs.push_back(value == nullptr ? ecg::kNone : value->tensor);
  }
  while (!node.inputs.empty() && node.inputs.back() == ecg::kNone) node.inputs.pop_back();
  auto [attributes, fresh] = attributes_.emplace(proto, ecg::Attributes());
  if (fresh) {
    for (auto& attribute : *proto->mutable_attribute()) {
      if (attribute.name() == ecg::kRounded) {  // a mark of the compiler's own
        return absl::InvalidArgumentError(
            absl::StrCat(NodeTitle(*proto), ": unknown attribute ", Quoted(attribute.name())));
      }
      ASSIGN_OR_RETURN(ecg::Attribute value, TakeAttribute(&attribute, NodeTitle(*proto)));
      attributes->second.Set(attribute.name(), std::move(value));
    }
  }
  node.attrs = attributes->second;
  std::vector<std::string> names = output_names;
  for (std::string& name : names) name.insert(0, label_);
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> outputs,
                   canonical_.AddModelNode(std::move(node), OpsetOf(*proto), names));
  std::vector<ImportedValue> values;
  values.reserve(outputs.size());
  for (ecg::ValueId id : outputs) values.push_back(ImportedValue::Tensor(id));
  return values;
}

absl::StatusOr<std::vector<ImportedValue>> GraphImporter::CallFunction(const onnx::NodeProto& proto) {
  const onnx::FunctionProto& function = *functions_.Find(proto.domain(), proto.op_type());
  // Each call copies the function's body.
  RETURN_IF_ERROR(Charge(static_cast<int64_t>(function.ByteSizeLong() >> 10)));
  ASSIGN_OR_RETURN(FunctionBody * body, functions_.BodyFor(function, proto));
  Bindings bound;
  for (int i = 0; i < function.input_size(); ++i) {
    const ImportedValue* value = i < proto.input_size() && !proto.input(i).empty() ? Find(proto.input(i)) : nullptr;
    bound.emplace_back(function.input(i), value == nullptr ? ImportedValue() : *value);  // absent
  }
  // A function sees only its own names.
  std::vector<Scope> caller_scopes = std::exchange(scopes_, {});
  std::map<std::string, int64_t> caller_opsets = std::exchange(opsets_, body->opsets);
  auto outputs = Inline(&body->graph, bound, absl::StrCat(NodeName(proto), "/"));
  scopes_ = std::move(caller_scopes);
  opsets_ = std::move(caller_opsets);
  return outputs;
}

absl::StatusOr<ecg::ValueId> GraphImporter::ConstantOf(onnx::NodeProto* node) {
  auto [known, fresh] = constants_.emplace(node, ecg::kNone);
  if (fresh) {
    ASSIGN_OR_RETURN(Tensor tensor, TakeConstantValue(node->mutable_attribute(0), NodeTitle(*node), files_));
    known->second = canonical_.graph.AddConstant(label_ + node->output(0), std::move(tensor));
  }
  return known->second;
}

absl::StatusOr<std::vector<ecg::ValueId>> GraphImporter::AddNodes(const std::string& op,
                                                                  std::vector<ecg::ValueId> inputs,
                                                                  ecg::Attributes attrs, int num_outputs) {
  ecg::Node node;
  node.op = op;
  node.name = node_name_;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  return canonical_.Add(node, num_outputs);
}

}  // namespace fusion::onnx_import
