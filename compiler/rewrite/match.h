// Finding a rule's pattern below a node.
#ifndef FUSION_COMPILER_REWRITE_MATCH_H_
#define FUSION_COMPILER_REWRITE_MATCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/work_graph.h"

namespace fusion::rewrite {

// What a variable stands for: one value, or several joined by the associative operator around it; empty: absent.
struct Bound {
  bool set = false;
  std::vector<ecg::ValueId> values;
};

struct Match {
  std::vector<Bound> variables;               // by slot; slot 0 is the root's value
  std::vector<const ecg::Attributes*> attrs;  // by slot
  std::vector<std::string> joined_by;         // by slot: the operator when there are several values
  std::vector<ecg::ValueId> rest;             // operands of the root's operator that the pattern leaves over
};

// Calls `visit` for each match of rule.pattern at `root` until it returns false. Operands of associative and
// commutative operators match in any order; with `reassociate` also in any grouping: a chain through values that
// nothing else uses counts as one operator. Two uses of a variable match the same value or equal constants, two uses of
// attributes equal ones. Returns the number of terms that were held against values, a measure of the work.
int FindMatches(const WorkGraph& graph, const Rule& rule, ecg::NodeId root, bool reassociate,
                absl::FunctionRef<bool(const Match&)> visit);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_MATCH_H_
