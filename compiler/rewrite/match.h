// Finds a rule's pattern below a node.
#ifndef FUSION_COMPILER_REWRITE_MATCH_H_
#define FUSION_COMPILER_REWRITE_MATCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/work_graph.h"

namespace fusion::rewrite {

// The values of a variable: one, or several joined by the associative operator around it; none if the input is absent.
struct Bound {
  bool set = false;
  std::vector<ecg::ValueId> values;
};

struct Match {
  std::vector<Bound> variables;               // by slot; slot 0 is the root's value
  std::vector<const ecg::Attributes*> attrs;  // by slot
  std::vector<std::string> joined_by;         // by slot: the operator if a variable has several values
  std::vector<ecg::ValueId> rest;             // operands of the root's operator that the pattern does not use
};

// Calls `visit` for each match of rule.pattern at `root` until it returns false. Operands of associative and
// commutative operators match in any order. With `reassociate` they also match in any grouping: a chain through values
// that nothing else uses counts as one operator. Two uses of a variable match the same value or equal constants, two
// uses of an attribute variable equal attributes. Returns the number of terms compared with values, a measure of the
// work.
int FindMatches(const WorkGraph& graph, const Rule& rule, ecg::NodeId root, bool reassociate,
                absl::FunctionRef<bool(const Match&)> visit);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_MATCH_H_
