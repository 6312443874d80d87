#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/fusion/plan.h"

namespace fusion {

absl::Status CheckPlan(const ecg::Graph& graph, const FusionPlan& plan) {
  const int n = static_cast<int>(graph.nodes().size());
  std::vector<int> block_of(n, -1);
  auto name = [&](ecg::NodeId id) { return absl::StrCat(graph.node(id).op, " '", graph.node(id).name, "'"); };
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    if (plan.blocks[b].nodes.empty()) return absl::InternalError(absl::StrCat("block ", b, " is empty"));
    for (ecg::NodeId id : plan.blocks[b].nodes) {
      if (id < 0 || id >= n) return absl::InternalError(absl::StrCat("block ", b, " holds no node ", id));
      if (block_of[id] >= 0) return absl::InternalError(absl::StrCat(name(id), " is in two blocks"));
      block_of[id] = static_cast<int>(b);
    }
    if (!std::is_sorted(plan.blocks[b].nodes.begin(), plan.blocks[b].nodes.end())) {
      return absl::InternalError(absl::StrCat("block ", b, " is not in topological order"));
    }
  }
  for (ecg::NodeId id = 0; id < n; ++id) {
    if (block_of[id] < 0) return absl::InternalError(absl::StrCat(name(id), " is in no block"));
    // Blocks in a topological order make every block convex: a path that left one could only come back from a later one.
    for (ecg::ValueId v : graph.node(id).inputs) {
      if (v == ecg::kNone || graph.value(v).producer == ecg::kNone) continue;
      const ecg::NodeId producer = graph.value(v).producer;
      if (block_of[producer] > block_of[id]) {
        return absl::InternalError(absl::StrCat(name(id), " runs before ", name(producer), ", which it reads"));
      }
    }
  }
  for (const Edge& edge : plan.edges) {
    const bool same = block_of[edge.producer] == block_of[edge.consumer];
    if (same == (edge.scope == Scope::kKernel)) {
      return absl::InternalError(absl::StrCat("edge ", name(edge.producer), " -> ", name(edge.consumer), " has scope ", ScopeName(edge.scope)));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion
