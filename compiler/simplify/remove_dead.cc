#include <algorithm>
#include <vector>

#include "compiler/ecg/rewriter.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {

ecg::Graph RemoveDead(const ecg::Graph& graph) {
  std::vector<char> live(graph.values().size(), 0);
  for (ecg::ValueId id : graph.outputs()) live[id] = 1;
  auto is_live = [&](const ecg::Node& node) {
    return std::any_of(node.outputs.begin(), node.outputs.end(), [&](ecg::ValueId id) { return live[id] != 0; });
  };
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!is_live(*node)) continue;
    for (ecg::ValueId id : node->inputs) {
      if (id != ecg::kNone) live[id] = 1;
    }
  }
  ecg::Rewriter rewriter(graph);
  for (const ecg::Node& node : graph.nodes()) {
    if (is_live(node)) rewriter.Copy(node);
  }
  return rewriter.Finish();
}

}  // namespace fusion::simplify
