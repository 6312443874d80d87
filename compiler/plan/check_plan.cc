#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/plan/plan.h"
#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

std::string Name(const ecg::Graph& graph, ecg::NodeId id) {
  return absl::StrCat(graph.node(id).op, " '", graph.node(id).name, "'");
}

// The fusion block that owns each node.
absl::StatusOr<std::vector<int>> Owners(const ecg::Graph& graph, const FusionPlan& plan) {
  const int n = static_cast<int>(graph.nodes().size());
  std::vector<int> owner(n, -1);
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    const FusionBlock& fusion_block = plan.fusion_blocks[b];
    if (fusion_block.nodes.empty()) return absl::InternalError(absl::StrCat("fusion block ", b, " is empty"));
    for (ecg::NodeId id : fusion_block.nodes) {
      if (id < 0 || id >= n) return absl::InternalError(absl::StrCat("fusion block ", b, " holds no node ", id));
      if (owner[id] >= 0) return absl::InternalError(absl::StrCat(Name(graph, id), " is in two fusion blocks"));
      owner[id] = static_cast<int>(b);
    }
    if (!std::is_sorted(fusion_block.nodes.begin(), fusion_block.nodes.end())) {
      return absl::InternalError(absl::StrCat("fusion block ", b, " is not in topological order"));
    }
  }
  for (ecg::NodeId id = 0; id < n; ++id) {
    if (owner[id] < 0) return absl::InternalError(absl::StrCat(Name(graph, id), " is in no fusion block"));
  }
  return owner;
}

bool Contains(const std::vector<int>& sorted, int id) { return std::binary_search(sorted.begin(), sorted.end(), id); }

// Checks that everything that the members of fusion block `b` read is made in it or in one that runs before it, and
// stored there.
absl::Status CheckReads(const ecg::Graph& graph, const FusionPlan& plan, const std::vector<int>& owner,
                        const std::vector<bool>& stored, int b) {
  const FusionBlock& fusion_block = plan.fusion_blocks[b];
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  for (ecg::NodeId id : fusion_block.recomputed) {
    if (id >= 0 && id < static_cast<int>(owner.size()) && owner[id] != b) continue;
    return absl::InternalError(absl::StrCat("fusion block ", b, " recomputes node ", id, ", which is its own or none"));
  }
  if (std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) != members.end()) {
    return absl::InternalError(absl::StrCat("fusion block ", b, " recomputes nodes out of order"));
  }
  for (ecg::NodeId id : members) {
    for (ecg::ValueId v : graph.node(id).inputs) {
      if (v == ecg::kNone || graph.value(v).producer == ecg::kNone) continue;
      const ecg::NodeId producer = graph.value(v).producer;
      if (Contains(members, producer)) continue;
      // If fusion blocks are in a topological order, each of them is convex: a path that left a fusion block could only
      // come back from a later one.
      if (owner[producer] > b) {
        return absl::InternalError(
            absl::StrCat(Name(graph, id), " runs before ", Name(graph, producer), ", which it reads"));
      }
      if (Contains(plan.fusion_blocks[owner[producer]].unread, v)) {
        return absl::InternalError(absl::StrCat(Name(graph, id), " reads what ", Name(graph, producer),
                                                " makes, and the plan says that nobody does"));
      }
      // Its readers in the graph may all be in the fusion block that owns it, while this one computes one of them
      // again.
      if (!stored[v]) {
        return absl::InternalError(absl::StrCat(Name(graph, id), ", which fusion block ", b, " recomputes, reads what ",
                                                Name(graph, producer), " makes and does not store"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CheckHandOver(const ecg::Graph& graph, const FusionBlock& fusion_block, const HandOver& hand_over) {
  const std::vector<HandOver> edges = InnerHandOvers(graph, fusion_block);
  if (std::find(edges.begin(), edges.end(), hand_over) == edges.end()) {
    return absl::InternalError(absl::StrCat("a fusion block has no edge from node ", hand_over.producer, " to node ",
                                            hand_over.consumer, " with value ", hand_over.value));
  }
  if (hand_over.nearest <= hand_over.furthest && hand_over.furthest < Scope::kKernel) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("edge ", Name(graph, hand_over.producer), " -> ",
                                          Name(graph, hand_over.consumer), " may have scopes from ",
                                          ScopeName(hand_over.nearest), " to ", ScopeName(hand_over.furthest)));
}

}  // namespace

absl::Status CheckPlan(const ecg::Graph& graph, const FusionPlan& plan) {
  ASSIGN_OR_RETURN(const std::vector<int> owner, Owners(graph, plan));
  ASSIGN_OR_RETURN(const ecg::Loops loops, ecg::FindLoops(graph));
  if (!plan.subprograms.empty() && plan.subprograms.size() != plan.fusion_blocks.size()) {
    return absl::InternalError(absl::StrCat("the plan has subprograms of ", plan.subprograms.size(), " of ",
                                            plan.fusion_blocks.size(), " fusion blocks"));
  }
  std::vector<bool> stored(graph.values().size(), false);
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    for (ecg::ValueId v : LiveOut(graph, fusion_block)) stored[v] = true;
  }
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    RETURN_IF_ERROR(CheckReads(graph, plan, owner, stored, static_cast<int>(b)));
    if (const absl::Status same = ecg::CheckSameLoop(graph, loops, plan.fusion_blocks[b].Members()); !same.ok()) {
      return absl::InternalError(absl::StrCat("fusion block ", b, ": ", same.message()));
    }
    for (const HandOver& hand_over : plan.fusion_blocks[b].inner) {
      RETURN_IF_ERROR(CheckHandOver(graph, plan.fusion_blocks[b], hand_over));
    }
    for (const Directive& directive : plan.fusion_blocks[b].directives) {
      if (directive.node == ecg::kNone || Contains(plan.fusion_blocks[b].Members(), directive.node)) continue;
      return absl::InternalError(absl::StrCat("fusion block ", b, " has a directive for node ", directive.node,
                                              ", which it does not compute"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion
