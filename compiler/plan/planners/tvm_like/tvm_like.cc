#include "compiler/plan/planners/tvm_like/tvm_like.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/plan/cover.h"
#include "compiler/plan/operator_kind.h"
#include "compiler/plan/planners/tvm_like/post_dominators.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;

// As many operators as TVM fuses (relay.FuseOps.max_depth).
constexpr size_t kMostOperators = 256;

// TVM's two phases: first products with what follows and elementwise operators with what they lead to, then injective
// operators with each other. A node fuses with all that lies between it and its post-dominator, or with nothing.
class FixedPatterns {
 public:
  explicit FixedPatterns(const PatternGraph& graph)
      : graph_(graph), tree_(PostDominators(graph)), group_of_(graph.patterns.size()), group_patterns_(graph.patterns) {
    for (size_t id = 0; id < group_of_.size(); ++id) {
      group_of_[id] = static_cast<NodeId>(id);
      members_.push_back({static_cast<NodeId>(id)});
    }
  }

  void Run() {
    for (const bool injective : {false, true}) {
      for (NodeId id = 0; id < static_cast<NodeId>(group_of_.size()); ++id) TryFuse(id, injective);
    }
  }

  NodeId Group(NodeId id) const { return group_of_[id]; }
  std::vector<std::vector<NodeId>> Groups() const {
    std::vector<std::vector<NodeId>> groups;
    for (std::vector<NodeId> members : members_) {
      std::sort(members.begin(), members.end());
      if (!members.empty()) groups.push_back(std::move(members));
    }
    return groups;
  }

 private:
  void TryFuse(NodeId id, bool injective_phase) {
    const NodeId sink = tree_[id].node;
    if (sink == ecg::kNone || Group(id) == Group(sink)) return;
    const Pattern own = graph_.patterns[id], way = tree_[id].pattern;
    switch (own) {
      case Pattern::kElementwiseBehind:
        if (injective_phase || way != Pattern::kElementwise) return;
        Fuse(id, sink, [](Pattern pattern, bool) { return pattern <= Pattern::kBroadcast; });
        return;
      case Pattern::kElementwise:
      case Pattern::kBroadcast:
        if (way > Pattern::kReduction) return;
        // The sink may be in the kernel of a product already.
        Fuse(id, sink, [](Pattern pattern, bool last) {
          return pattern <= (last ? Pattern::kElementwiseBehind : Pattern::kInjective);
        });
        return;
      case Pattern::kInjective:
        if (!injective_phase) return;
        Fuse(id, sink, [](Pattern pattern, bool) { return pattern <= Pattern::kInjective; });
        return;
      case Pattern::kReduction:
      case Pattern::kOpaque:
        return;
    }
  }

  // Fuses the node with all between it and `sink`, if `may` allows the patterns of all their groups.
  void Fuse(NodeId id, NodeId sink, const std::function<bool(Pattern, bool last)>& may) {
    std::set<NodeId> between;
    std::vector<NodeId> open = {id};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      for (const PatternGraph::Edge& edge : graph_.edges[node]) {
        if (!between.insert(edge.consumer).second) continue;
        if (!may(group_patterns_[Group(edge.consumer)], edge.consumer == sink)) return;
        if (edge.consumer != sink) open.push_back(edge.consumer);
      }
    }
    size_t operators = members_[Group(id)].size();
    std::set<NodeId> groups = {Group(id)};
    for (NodeId node : between) {
      if (groups.insert(Group(node)).second) operators += members_[Group(node)].size();
    }
    if (operators > kMostOperators) return;
    const NodeId into = Group(sink);
    groups.erase(into);
    for (NodeId group : groups) {
      // Only a product makes the group more complex: an injective operator in front of elementwise ones does not.
      if (group_patterns_[group] == Pattern::kElementwiseBehind) group_patterns_[into] = Pattern::kElementwiseBehind;
      for (NodeId member : members_[group]) group_of_[member] = into;
      members_[into].insert(members_[into].end(), members_[group].begin(), members_[group].end());
      members_[group].clear();
    }
  }

  const PatternGraph& graph_;
  const std::vector<PostDominator> tree_;
  std::vector<NodeId> group_of_;
  std::vector<std::vector<NodeId>> members_;  // by group
  std::vector<Pattern> group_patterns_;       // by group
};

class TvmLike : public Planner {
 public:
  const char* name() const override { return "tvm_like"; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel&, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    const PatternGraph patterns = MakePatternGraph(graph, TraitsOf(graph));
    FixedPatterns fixed(patterns);
    fixed.Run();
    // A group without a schedule is cut in two, again and again. Halves of a convex group in topological order are
    // convex.
    std::vector<std::vector<NodeId>> open = fixed.Groups(), sets;
    std::reverse(open.begin(), open.end());
    std::map<NodeId, std::string> refused;  // by group
    int64_t done = 0;
    while (!open.empty()) {
      if (options.cancelled && options.cancelled()) return absl::CancelledError("planning was cancelled");
      std::vector<NodeId> group = std::move(open.back());
      open.pop_back();
      if (group.size() > 1) {
        if (const absl::StatusOr<FusionBlockAccount> fit = oracle.Fit(graph, {group}); !fit.ok()) {
          refused.try_emplace(fixed.Group(group[0]), std::string(fit.status().message()));
          const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
          open.emplace_back(middle, group.end());
          open.emplace_back(group.begin(), middle);
          continue;
        }
      }
      done += static_cast<int64_t>(group.size());
      if (options.progress) options.progress(done, static_cast<int64_t>(graph.nodes().size()));
      sets.push_back(std::move(group));
    }
    FusionPlan plan;
    ASSIGN_OR_RETURN(plan.fusion_blocks, FusionBlocksOfCover(graph, sets));
    std::vector<size_t> fusion_block_of(graph.nodes().size());
    for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
      for (NodeId id : plan.fusion_blocks[b].nodes) fusion_block_of[id] = b;
    }
    for (NodeId id = 0; id < static_cast<NodeId>(fusion_block_of.size()); ++id) {
      for (const PatternGraph::Edge& edge : patterns.edges[id]) {
        Decision& decision = plan.decisions.emplace_back();
        decision.producer = id;
        decision.consumer = edge.consumer;
        decision.fused = fusion_block_of[id] == fusion_block_of[edge.consumer];
        if (decision.fused) {
          decision.reason = "a fixed pattern fuses everything up to where all paths meet";
        } else if (fixed.Group(id) == fixed.Group(edge.consumer)) {
          decision.reason = absl::StrCat("a fixed pattern, which cannot be one kernel: ", refused[fixed.Group(id)]);
        } else {
          decision.reason = "no fixed pattern";
        }
      }
    }
    return plan;
  }
};

}  // namespace

const Planner* TvmLikePlanner() {
  static const auto* const kPlanner = new TvmLike;
  return kPlanner;
}

}  // namespace fusion
