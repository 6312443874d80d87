#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ecg/graph.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {
namespace {

absl::Status Broken(const Graph& graph, NodeId id, const std::string& what) {
  const Node& node = graph.node(id);
  return absl::InternalError(absl::StrCat("graph broken at node ", id, " ", node.op, " '", node.name, "': ", what));
}

absl::Status VerifyValues(const Graph& graph) {
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    const std::string what = absl::StrCat("graph broken at value ", id, " '", value.name, "': ");
    if (value.producer < kNone || value.producer >= static_cast<NodeId>(graph.nodes().size())) {
      return absl::InternalError(absl::StrCat(what, "its producer does not exist"));
    }
    if (!value.constant.has_value()) continue;
    if (value.producer != kNone) return absl::InternalError(absl::StrCat(what, "a constant has a producer"));
    if (value.constant->dtype() != value.type.dtype || value.constant->shape() != value.type.shape) {
      return absl::InternalError(absl::StrCat(what, "the constant's type differs from the value's"));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyNode(const Graph& graph, NodeId id, std::vector<std::vector<NodeId>>* consumers) {
  const Node& node = graph.node(id);
  const auto num_values = static_cast<ValueId>(graph.values().size());
  if (node.outputs.empty()) return Broken(graph, id, "no outputs");
  for (ValueId input : node.inputs) {
    if (input == kNone) continue;
    if (input < 0 || input >= num_values) return Broken(graph, id, "an input does not exist");
    if (graph.value(input).producer >= id) return Broken(graph, id, "an input is defined after its use");
    (*consumers)[input].push_back(id);
  }
  for (ValueId output : node.outputs) {
    if (output < 0 || output >= num_values) return Broken(graph, id, "an output does not exist");
    if (graph.value(output).producer != id) return Broken(graph, id, "an output names another producer");
  }
  if (ops::FindOp(node.op) == nullptr) return Broken(graph, id, "unknown operator");
  auto types = ops::InferTypes(ops::MakeContext(graph, node), static_cast<int>(node.outputs.size()));
  if (!types.ok()) return Broken(graph, id, std::string(types.status().message()));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueType& type = graph.value(node.outputs[i]).type;
    if (i >= types->size() || !((*types)[i] == type)) {
      return Broken(
          graph, id,
          absl::StrCat("output ", i, " is ", DTypeName(type.dtype), ShapeToString(type.shape), ", the operator makes ",
                       i < types->size() ? absl::StrCat(DTypeName((*types)[i].dtype), ShapeToString((*types)[i].shape))
                                         : std::string("no such output")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Graph& graph) {
  RETURN_IF_ERROR(VerifyValues(graph));
  std::vector<std::vector<NodeId>> consumers(graph.values().size());
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    RETURN_IF_ERROR(VerifyNode(graph, static_cast<NodeId>(id), &consumers));
  }
  for (size_t id = 0; id < consumers.size(); ++id) {
    if (consumers[id] != graph.values()[id].consumers) {
      return absl::InternalError(
          absl::StrCat("graph broken at value ", id, ": its consumers are not the nodes that use it"));
    }
  }
  for (const std::vector<ValueId>* ids : {&graph.inputs(), &graph.outputs()}) {
    for (ValueId id : *ids) {
      if (id < 0 || id >= static_cast<ValueId>(graph.values().size())) {
        return absl::InternalError("graph broken: an input or output does not exist");
      }
    }
  }
  const int outputs = static_cast<int>(graph.outputs().size());
  for (const OutputExtent& e : graph.output_extents()) {
    const auto is_output = [&](int i) { return i >= 0 && i < outputs; };
    const bool fits = is_output(e.output) && is_output(e.extent) && e.dim >= 0 &&
                      e.dim < static_cast<int>(graph.value(graph.outputs()[e.output]).type.shape.size()) &&
                      graph.value(graph.outputs()[e.extent]).type == ValueType{DType::kI64, {}};
    if (!fits)
      return absl::InternalError(absl::StrCat("graph broken: the extent of output ", e.output, " does not fit"));
  }
  RETURN_IF_ERROR(FindLoops(graph).status());
  for (ValueId id : graph.inputs()) {
    if (graph.value(id).producer != kNone || graph.value(id).constant.has_value()) {
      return absl::InternalError(absl::StrCat("graph broken: input '", graph.value(id).name, "' has a producer"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::ecg
