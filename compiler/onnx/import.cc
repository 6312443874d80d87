#include "compiler/onnx/import.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/onnx/attribute_import.h"
#include "compiler/onnx/bind_inputs.h"
#include "compiler/onnx/canonical_graph.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/model_file.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/tensor_import.h"
#include "compiler/ops/refused.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using Scope = std::unordered_map<std::string, ecg::ValueId>;

class Importer {
 public:
  Importer(const ImportRequest& request, onnx::ModelProto* model)
      : request_(request), model_(model), files_(&request.external) {}

  absl::StatusOr<ImportedModel> Run() {
    onnx::GraphProto* graph = model_->mutable_graph();
    if (graph->node_size() > kMaxNodes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the model has ", graph->node_size(), " nodes, at most ", kMaxNodes));
    }
    ASSIGN_OR_RETURN(opsets_, OpsetVersions(*model_));
    ImportedModel result;
    for (const auto& node : graph->node()) result.model_nodes += node.op_type() != "Constant";
    scopes_.emplace_back();
    ASSIGN_OR_RETURN(const auto inputs, BindInputs(*graph, request_));
    for (const auto& [name, type] : inputs) {
      auto constant = request_.constant_inputs.find(name);
      scopes_.back()[name] = constant == request_.constant_inputs.end()
                                 ? canonical_.graph.AddInput(name, type)
                                 : canonical_.graph.AddConstant(name, constant->second);
    }
    ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> outputs, ImportGraph(graph));
    if (outputs.empty()) return absl::InvalidArgumentError("the model has no outputs");
    for (int i = 0; i < graph->output_size(); ++i) {
      ecg::AddOwnOutput(&canonical_.graph, outputs[i], graph->output(i).name());
    }
    canonical_.graph.name = graph->name();
    result.graph = std::move(canonical_.graph);
    return result;
  }

 private:
  bool IsDefined(const std::string& name) const { return Find(name) != ecg::kNone; }

  ecg::ValueId Find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (auto it = scope->find(name); it != scope->end()) return it->second;
    }
    return ecg::kNone;
  }

  // The innermost scope holds the graph's inputs. Returns its outputs.
  absl::StatusOr<std::vector<ecg::ValueId>> ImportGraph(onnx::GraphProto* graph) {
    if (graph->sparse_initializer_size() > 0) return absl::UnimplementedError("sparse initializers are not supported");
    for (auto& proto : *graph->mutable_initializer()) {
      const std::string name = proto.name();
      ASSIGN_OR_RETURN(Tensor tensor, TakeTensor(&proto, absl::StrCat("initializer ", Quoted(name)), &files_));
      if (!scopes_.back().emplace(name, canonical_.graph.AddConstant(name, std::move(tensor))).second) {
        return absl::InvalidArgumentError(absl::StrCat("initializer ", Quoted(name), " is defined twice"));
      }
    }
    ASSIGN_OR_RETURN(const std::vector<int> order,
                     NeededNodesInOrder(*graph, [&](const std::string& name) { return IsDefined(name); }));
    RETURN_IF_ERROR(CheckSupported(*graph, order));
    for (int id : order) RETURN_IF_ERROR(ImportNode(graph->mutable_node(id)));
    std::vector<ecg::ValueId> outputs;
    for (const auto& output : graph->output()) outputs.push_back(Find(output.name()));
    return outputs;
  }

  static std::string CanonicalName(const onnx::NodeProto& node) {
    const bool standard = node.domain().empty() || node.domain() == "ai.onnx";
    return standard ? node.op_type() : absl::StrCat(node.domain(), ".", node.op_type());
  }

  // Constant and If are ways of writing a graph down, not operators: they end here.
  static bool IsStructural(const std::string& op) { return op == "Constant" || op == "If"; }

  absl::Status CheckSupported(const onnx::GraphProto& graph, const std::vector<int>& order) const {
    std::map<std::string, std::pair<int, std::string>> unsupported;  // operator → count, one node
    for (int id : order) {
      const onnx::NodeProto& node = graph.node(id);
      const std::string op = CanonicalName(node);
      if (IsStructural(op) || ops::FindOp(op) != nullptr) continue;
      auto& entry = unsupported[op];
      if (entry.first++ == 0) entry.second = NodeName(node);
    }
    if (unsupported.empty()) return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "unsupported operator(s): ", absl::StrJoin(unsupported, "; ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, Quoted(entry.first), " (", entry.second.first, "×, e.g. node ",
                          Quoted(entry.second.second), ")");
          const std::string reason = ops::RefusalReason(entry.first);
          if (!reason.empty()) absl::StrAppend(out, ": ", reason);
        })));
  }

  absl::Status ImportNode(onnx::NodeProto* proto) {
    const std::string op = CanonicalName(*proto);
    if (op == "Constant") return ImportConstant(proto);
    if (op == "If") return InlineIf(proto);
    ecg::Node node;
    node.op = op;
    node.name = NodeName(*proto);
    for (const std::string& input : proto->input()) node.inputs.push_back(input.empty() ? ecg::kNone : Find(input));
    while (!node.inputs.empty() && node.inputs.back() == ecg::kNone) node.inputs.pop_back();
    for (auto& attribute : *proto->mutable_attribute()) {
      ASSIGN_OR_RETURN(ecg::Attribute value, TakeAttribute(&attribute, NodeTitle(*proto)));
      node.attrs.Set(attribute.name(), std::move(value));
    }
    std::vector<std::string> names(proto->output().begin(), proto->output().end());
    while (!names.empty() && names.back().empty()) names.pop_back();
    auto opset = opsets_.find(proto->domain() == "ai.onnx" ? "" : proto->domain());
    ASSIGN_OR_RETURN(
        const std::vector<ecg::ValueId> outputs,
        canonical_.AddModelNode(std::move(node), opset == opsets_.end() ? 1 : static_cast<int>(opset->second), names));
    for (size_t i = 0; i < names.size(); ++i) {
      if (!names[i].empty()) scopes_.back()[names[i]] = outputs[i];
    }
    return absl::OkStatus();
  }

  absl::Status ImportConstant(onnx::NodeProto* proto) {
    if (proto->output_size() != 1 || proto->attribute_size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(NodeTitle(*proto), ": needs one value and one output"));
    }
    ASSIGN_OR_RETURN(Tensor tensor, TakeConstantValue(proto->mutable_attribute(0), NodeTitle(*proto), &files_));
    const std::string& name = proto->output(0);
    scopes_.back()[name] = canonical_.graph.AddConstant(name, std::move(tensor));
    return absl::OkStatus();
  }

  // Exporters guard shape cases with If; once shapes are static its condition is a constant and one branch remains.
  absl::Status InlineIf(onnx::NodeProto* proto) {
    const std::string title = NodeTitle(*proto);
    const ecg::ValueId condition = proto->input_size() == 1 ? Find(proto->input(0)) : ecg::kNone;
    if (condition == ecg::kNone) return absl::InvalidArgumentError(absl::StrCat(title, ": needs one condition"));
    const ecg::Value& value = canonical_.graph.value(condition);
    if (!value.constant.has_value()) {
      return absl::UnimplementedError(absl::StrCat(title, ": its condition is not known at compile time"));
    }
    if (value.constant->dtype() != DType::kBool || value.constant->num_elements() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(title, ": its condition is no single bool"));
    }
    const std::string wanted = value.constant->GetInt(0) != 0 ? "then_branch" : "else_branch";
    for (auto& attribute : *proto->mutable_attribute()) {
      if (attribute.name() != wanted || !attribute.has_g()) continue;
      scopes_.emplace_back();
      auto outputs = ImportGraph(attribute.mutable_g());
      scopes_.pop_back();
      if (!outputs.ok()) return Annotate(outputs.status(), title);
      if (static_cast<int>(outputs->size()) < proto->output_size()) {
        return absl::InvalidArgumentError(absl::StrCat(title, ": its ", wanted, " has too few outputs"));
      }
      for (int i = 0; i < proto->output_size(); ++i) {
        if (!proto->output(i).empty()) scopes_.back()[proto->output(i)] = (*outputs)[i];
      }
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(title, ": has no ", wanted));
  }

  const ImportRequest& request_;
  onnx::ModelProto* model_;
  ExternalFiles files_;
  std::map<std::string, int64_t> opsets_;
  CanonicalGraph canonical_;
  std::vector<Scope> scopes_;
};

}  // namespace

absl::StatusOr<ImportedModel> ImportOnnx(const ImportRequest& request) {
  ASSIGN_OR_RETURN(std::unique_ptr<onnx::ModelProto> model,
                   ReadModel(request.model_path, request.model_name.empty() ? request.model_path : request.model_name));
  return Importer(request, model.get()).Run();
}

}  // namespace fusion::onnx_import
