#include <vector>

#include "compiler/analysis/evaluate.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

bool SameTypes(const ecg::Graph& graph, const ecg::Node& node, const std::vector<ecg::ValueId>& inputs) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!(graph.value(node.outputs[i]).type == graph.value(inputs[i]).type)) return false;
  }
  return true;
}

// Answers cheaply for most nodes: lowering a node only to learn that it is no copy is this pass's whole cost.
bool MayBeNoop(const ecg::Graph& graph, const ecg::Node& node) {
  for (ecg::ValueId output : node.outputs) {
    if (graph.IsOutputWithExtents(output)) return false;
    bool found = false;
    for (ecg::ValueId input : node.inputs) {
      found = found || (input != ecg::kNone && graph.value(input).type == graph.value(output).type);
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

ecg::Graph RemoveNoops(const ecg::Graph& graph) {
  ecg::Rewriter rewriter(graph);
  for (const ecg::Node& node : graph.nodes()) {
    const std::vector<ecg::ValueId> aliases =
        MayBeNoop(graph, node) ? ecg::AliasesOf(graph, node) : std::vector<ecg::ValueId>();
    if (aliases.empty() || !SameTypes(graph, node, aliases)) {
      rewriter.Copy(node);
      continue;
    }
    for (size_t i = 0; i < aliases.size(); ++i) rewriter.Bind(node.outputs[i], rewriter.Map(aliases[i]));
  }
  return rewriter.Finish();
}

}  // namespace fusion::simplify
