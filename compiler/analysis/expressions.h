// Facts that the tensor expressions of a node reveal (Souffle, ASPLOS 2024, section 5): how its results rely on its
// operands, and whether it computes or moves.
#ifndef FUSION_COMPILER_ANALYSIS_EXPRESSIONS_H_
#define FUSION_COMPILER_ANALYSIS_EXPRESSIONS_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/program/transform.h"

namespace fusion::ecg {

// Operations for each element that is read or written, from which on an expression that reduces is compute-intensive
// (section 5.3: "empirically set to 3").
inline constexpr double kComputeIntensity = 3;

struct NodeExpressions {
  bool routine = false;  // no expression describes it (a sort)
  bool reduces = false;  // an expression of it has a reduction: one-relies-on-many
  // Operations for each element read or written, of the most intense expression that reduces; 0 if none does.
  double intensity = 0;
  // How an element of its results relies on each value that it reads, through all its expressions (section 5.2). An
  // expression without a reduction relies on one element for each of its loads.
  std::map<ValueId, te::Dependence> relies_on;

  bool ComputeIntensive() const { return intensity >= kComputeIntensity; }
};

absl::StatusOr<NodeExpressions> ExpressionsOf(const Graph& graph, NodeId node);

// A value that is no constant and that several nodes read (section 5.1).
struct ReuseSet {
  ValueId value = kNone;
  std::vector<NodeId> readers;  // distinct, ascending
  // Some readers do not depend on each other, so that one kernel could read the value once for all of them.
  bool spatial = false;
  // Some reader depends on another, so that the value could be kept until it is read again.
  bool temporal = false;
};
std::vector<ReuseSet> ReuseSets(const Graph& graph);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_EXPRESSIONS_H_
