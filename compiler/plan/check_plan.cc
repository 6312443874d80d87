#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/plan/plan.h"

namespace fusion {

absl::Status CheckPlan(const ecg::Graph& graph, const FusionPlan& plan) {
  const int n = static_cast<int>(graph.nodes().size());
  std::vector<int> block_of(n, -1);
  auto name = [&](ecg::NodeId id) { return absl::StrCat(graph.node(id).op, " '", graph.node(id).name, "'"); };
  for (size_t b = 0; b < plan.blocks.size(); ++b) {
    if (plan.blocks[b].nodes.empty()) return absl::InternalError(absl::StrCat("fusion block ", b, " is empty"));
    for (ecg::NodeId id : plan.blocks[b].nodes) {
      if (id < 0 || id >= n) return absl::InternalError(absl::StrCat("fusion block ", b, " holds no node ", id));
      if (block_of[id] >= 0) return absl::InternalError(absl::StrCat(name(id), " is in two fusion blocks"));
      block_of[id] = static_cast<int>(b);
    }
    if (!std::is_sorted(plan.blocks[b].nodes.begin(), plan.blocks[b].nodes.end())) {
      return absl::InternalError(absl::StrCat("fusion block ", b, " is not in topological order"));
    }
  }
  for (ecg::NodeId id = 0; id < n; ++id) {
    if (block_of[id] < 0) return absl::InternalError(absl::StrCat(name(id), " is in no fusion block"));
    // If fusion blocks are in a topological order, each of them is convex: a path that left a fusion block could only
    // come back from a later one.
    for (ecg::ValueId v : graph.node(id).inputs) {
      if (v == ecg::kNone || graph.value(v).producer == ecg::kNone) continue;
      const ecg::NodeId producer = graph.value(v).producer;
      if (block_of[producer] > block_of[id]) {
        return absl::InternalError(absl::StrCat(name(id), " runs before ", name(producer), ", which it reads"));
      }
    }
  }
  std::set<std::pair<ecg::ValueId, ecg::NodeId>> listed;
  for (const Edge& edge : plan.edges) {
    const bool in_graph =
        edge.consumer >= 0 && edge.consumer < n && edge.value >= 0 &&
        edge.value < static_cast<int>(graph.values().size()) && edge.producer != ecg::kNone &&
        graph.value(edge.value).producer == edge.producer &&
        std::count(graph.node(edge.consumer).inputs.begin(), graph.node(edge.consumer).inputs.end(), edge.value) > 0;
    if (!in_graph) {
      return absl::InternalError(absl::StrCat("the graph has no edge from node ", edge.producer, " to node ",
                                              edge.consumer, " with value ", edge.value));
    }
    listed.emplace(edge.value, edge.consumer);
    const bool same = block_of[edge.producer] == block_of[edge.consumer];
    if (same == (edge.scope == Scope::kKernel)) {
      return absl::InternalError(absl::StrCat("edge ", name(edge.producer), " -> ", name(edge.consumer), " has scope ",
                                              ScopeName(edge.scope)));
    }
  }
  for (ecg::NodeId id = 0; id < n; ++id) {
    for (ecg::ValueId v : graph.node(id).inputs) {
      if (v == ecg::kNone || graph.value(v).producer == ecg::kNone || listed.count({v, id})) continue;
      return absl::InternalError(absl::StrCat("no edge ", name(graph.value(v).producer), " -> ", name(id)));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion
