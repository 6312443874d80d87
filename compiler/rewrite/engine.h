// The engine applies rules to a graph (DNNFusion §4.2). The graph is partitioned at operators that have none of the
// three properties (associative, commutative, distributive) and that no pattern names. Inside a partition the engine
// finds all matches and applies the one that saves the most FLOPs, until none is left; composite rules, which come
// first, are ranked by the number of nodes they save.
#ifndef FUSION_COMPILER_REWRITE_ENGINE_H_
#define FUSION_COMPILER_REWRITE_ENGINE_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {

struct Options {
  MathLevel math = MathLevel::kFast;
  std::set<std::string> disabled;  // rule ids
};

// One application of a rule, for reports.
struct Firing {
  std::string rule;
  std::string where;                        // the root node, for people
  double flops_saved = 0, bytes_saved = 0;  // bytes read and written; either may be negative
  int64_t nodes_saved = 0;
};

struct Result {
  ecg::Graph graph;
  std::vector<Firing> firings;
  // The work of finding the firings, equal on every machine: terms of patterns compared with values, and replacements
  // drafted.
  int64_t match_steps = 0, drafts = 0;
};

// Returns a graph with the same inputs and outputs, equal within the rules' class. INTERNAL if a rule breaks the graph;
// NOT_FOUND for a disabled rule that `rules` lack.
absl::StatusOr<Result> RewriteWith(const ecg::Graph& graph, const std::vector<Rule>& rules, const Options& options);

// Returns NOT_FOUND, with the nearest names, where no rule has the id.
absl::Status CheckRuleIdIn(const std::vector<Rule>& rules, const std::string& id);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_ENGINE_H_
