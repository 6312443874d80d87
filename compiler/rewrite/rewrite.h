// Graph rewriting by mathematical properties (DNNFusion §4.2) with the built-in rules, which are text
// (compiler/rewrite/rules/*.rules).
#ifndef FUSION_COMPILER_REWRITE_REWRITE_H_
#define FUSION_COMPILER_REWRITE_REWRITE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/rewrite/engine.h"

namespace fusion::rewrite {

// Returns INTERNAL where a built-in rule is malformed or undoes another. For start-up; Rewrite checks this, too.
absl::Status CheckRules();

// Returns NOT_FOUND, with the nearest names, where no built-in rule has the id.
absl::Status CheckRuleId(const std::string& id);

// Returns a graph with the same inputs and outputs, equal within the rules' class. INTERNAL if a rule breaks the graph;
// NOT_FOUND for an unknown disabled rule.
absl::StatusOr<Result> Rewrite(const ecg::Graph& graph, const Options& options);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_REWRITE_H_
