#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ops/registry/expression.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

// Whether something is handed over inside the operator: by a reduction to another expression, or to it.
bool IsComposite(const te::Program& program) {
  bool reduces = false;
  for (const te::Te& te : program.tes) {
    if (te.routine) return false;
    reduces |= te.reduction.has_value();
  }
  return reduces && program.tes.size() > 1;
}

// Adds a node for each expression of the lowered node, and binds its results to theirs.
void Open(const ecg::Node& node, const ops::LoweredFusionBlock& lowered, ecg::Rewriter* rewriter) {
  const te::Program& program = lowered.program;
  ecg::Graph* graph = rewriter->graph();
  const std::string& whole = program.tensors[program.outputs[0]].name;
  std::map<te::TensorId, ecg::ValueId> values;
  for (te::TensorId tensor : program.inputs) {
    const ecg::ValueId value = lowered.value_of_tensor[tensor];
    const te::TensorInfo& info = program.tensors[tensor];
    // A constant that the lowering made (an index table) becomes one of the graph.
    values[tensor] = value != ecg::kNone ? rewriter->Map(value)
                                         : graph->AddConstant(absl::StrCat(whole, "_", info.name), *info.constant);
  }
  for (size_t t = 0; t < program.tes.size(); ++t) {
    const te::Te& te = program.tes[t];
    const ops::Expression expression = ops::ToExpression(program, te);
    std::vector<ecg::ValueId> inputs;
    for (te::TensorId tensor : expression.inputs) inputs.push_back(values.at(tensor));
    std::vector<std::string> names;
    std::vector<ecg::ValueType> types;
    for (te::TensorId output : te.outputs) {
      const te::TensorInfo& info = program.tensors[output];
      const bool own = lowered.value_of_tensor[output] != ecg::kNone;
      names.push_back(own ? info.name : absl::StrCat(whole, "_", info.name));
      types.push_back({info.dtype, info.shape});
    }
    ecg::Attributes attrs;
    attrs.Set(ops::kExpressionText, expression.text);
    const ecg::NodeId made = graph->AddNode(ops::kExpression, absl::StrCat(node.name, ".", t), std::move(inputs),
                                            std::move(attrs), types, names);
    for (size_t o = 0; o < te.outputs.size(); ++o) values[te.outputs[o]] = graph->node(made).outputs[o];
  }
  for (te::TensorId output : program.outputs) rewriter->Bind(lowered.value_of_tensor[output], values.at(output));
}

}  // namespace

ecg::Graph OpenComposites(const ecg::Graph& graph) {
  ecg::Rewriter rewriter(graph);
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const ecg::Node& node = graph.node(id);
    const absl::StatusOr<ops::LoweredFusionBlock> lowered = ops::LowerNodes(graph, {id}, node.outputs);
    if (lowered.ok() && IsComposite(lowered->program)) {
      Open(node, *lowered, &rewriter);
    } else {
      rewriter.Copy(node);
    }
  }
  return rewriter.Finish();
}

}  // namespace fusion::simplify
