// The program as a row of elements, none of which needs a later one: an expression that a cut may stand in front of,
// and what follows it.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_ELEMENTS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_ELEMENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/analysis/expressions.h"
#include "compiler/ecg/graph.h"

namespace fusion::souffle {

enum class CutAt {
  kComputeIntensive,  // the paper's candidates (section 5.4)
  kReductions,        // and every other node that is one-relies-on-many
};

struct Element {
  std::vector<ecg::NodeId> nodes;   // ascending
  ecg::NodeId anchor = ecg::kNone;  // in front of which a cut may stand; kNone: the program begins here
  bool compute_intensive = false;   // the anchor
  bool routine = false;             // the anchor, which shares no kernel with anything
};

// Facts of every node, by id.
absl::StatusOr<std::vector<ecg::NodeExpressions>> FactsOf(const ecg::Graph& graph);

// A memory-intensive node follows the last of the anchors whose results reach it (the paper's schedule propagation,
// which gives it the schedule of its compute-intensive producer). One that no anchor reaches precedes its first reader.
// Returns elements in an order in which they can run; each node is in exactly one.
std::vector<Element> ElementsOf(const ecg::Graph& graph, const std::vector<ecg::NodeExpressions>& facts, CutAt cut_at);

}  // namespace fusion::souffle

#endif  // FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_ELEMENTS_H_
