// FusionBlock: what a plan says about one kernel. It names nodes and, for the values that they hand to each other, the
// scopes that the planner allows. The schedule finds the scopes; compiler/kernels/fusion_kernel.h has what it found.
#ifndef FUSION_COMPILER_PLAN_FUSION_BLOCK_H_
#define FUSION_COMPILER_PLAN_FUSION_BLOCK_H_

#include <compare>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/plan/scope.h"

namespace fusion {

// A value that one node of a fusion block hands to another one, and the scopes at which it may do so.
struct HandOver {
  ecg::NodeId producer = ecg::kNone;
  ecg::NodeId consumer = ecg::kNone;
  ecg::ValueId value = ecg::kNone;
  // A value that may be no nearer than kBlock exists in memory and is not recomputed in its readers. kDevice asks for a
  // barrier of the device between them.
  Scope nearest = Scope::kLane;
  Scope furthest = Scope::kBlock;

  auto operator<=>(const HandOver&) const = default;
};

// A planner's wish for the schedule: the explicit schedules of the papers. It names one of the scheduler's choices
// (compiler/schedule/choices.h, `ecg-opt --print choices`) at the stage that computes for a node, and the label of the
// alternative to take. It must be met exactly once: a choice that does not come up there, or that lacks the
// alternative, refuses the fusion block.
struct Directive {
  ecg::NodeId node = ecg::kNone;  // kNone: a choice of the whole kernel ("form"), or wherever it comes up
  std::string choice;             // "tile"
  std::string alternative;        // "6x4"

  auto operator<=>(const Directive&) const = default;
};

struct FusionBlock {
  FusionBlock() = default;
  // Nodes with hand-overs at the default scopes: most fusion blocks.
  FusionBlock(std::vector<ecg::NodeId> owned) : nodes(std::move(owned)) {}  // NOLINT(google-explicit-constructor)
  FusionBlock(std::initializer_list<ecg::NodeId> owned) : nodes(owned) {}

  std::vector<ecg::NodeId> nodes;       // that it owns, ascending, which is a topological order
  std::vector<ecg::NodeId> recomputed;  // owned by other fusion blocks and computed here again, ascending
  std::vector<ecg::ValueId> unread;     // results of `nodes` that every reader outside recomputes, ascending
  // Results of `nodes` that others read although every reader in the graph is a member: others recompute such a reader.
  // Ascending.
  std::vector<ecg::ValueId> kept;
  std::vector<HandOver> inner;        // the hand-overs of which something is asked, ascending
  std::vector<Directive> directives;  // ascending

  // Owned and recomputed nodes, ascending.
  std::vector<ecg::NodeId> Members() const;
  auto operator<=>(const FusionBlock&) const = default;
};

// Returns every hand-over between members of the fusion block: what is asked of it, else the default.
std::vector<HandOver> InnerHandOvers(const ecg::Graph& graph, const FusionBlock& fusion_block);

// Returns the values that the fusion block's kernel stores: other fusion blocks read them or the model returns them.
std::vector<ecg::ValueId> LiveOut(const ecg::Graph& graph, const FusionBlock& fusion_block);

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_FUSION_BLOCK_H_
