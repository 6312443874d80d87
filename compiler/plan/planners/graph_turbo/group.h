// Grouping of sub-graphs (GraphTurbo, section 3.2, Algorithm 2).
//
// Patterns (Fig. 4), over the current sub-graphs:
//   straight  two sub-graphs; the first is the only producer of the second, the second the only consumer of the first.
//             Both become one by rule (i).
//   diamond   one entry, one exit and at least two paths from one to the other. Sub-graphs between have the entry as
//             their only producer and the exit as their only consumer; one path may be the edge from the entry itself.
//             All but the entry become one by rule (ii).
//   branch    an exit with several producers, of which one has the exit as its only consumer. These two become one by
//             rule (i).
// Rules, where f is the splitting factor, the number of instances:
//   (i)   f(second) ≥ f(first), and f(both) ≤ f(second).
//   (ii)  f(all) ≤ the largest of theirs.
// A sub-graph that cannot be split so that it fits stays alone.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GROUP_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GROUP_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/planners/graph_turbo/split_info.h"
#include "compiler/plan/planners/graph_turbo/sub_graph.h"

namespace fusion::graph_turbo {

struct GroupedSubGraph {
  SubGraph sub_graph;
  std::optional<Split> best;  // nullopt: no instance fits
};

struct Grouping {
  std::vector<GroupedSubGraph> sub_graphs;  // in a topological order
  // One line a merge, in order: "straight: conv1 + relu1, f 8". For people and tests.
  std::vector<std::string> merges;
};

struct GroupRules {
  // Beyond the paper: sub-graphs become one wherever an instance of it fits, whatever f is. Instances may then run at
  // different rates, two rows of a stage for one of the next, which has half as many, and be smaller than either alone
  // would need.
  bool wherever_fits = false;
};

Grouping GroupSubGraphs(const OpGraph& graph, const SplitLimits& limits, const GroupRules& rules = {});

// Rule (i) and rule (ii) on splitting factors.
bool RuleOne(int64_t f_first, int64_t f_second, int64_t f_merged);
bool RuleTwo(const std::vector<int64_t>& f_parts, int64_t f_merged);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GROUP_H_
