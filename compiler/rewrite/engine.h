// The engine with given rules, for tests. Rewrite uses the built-in ones.
#ifndef FUSION_COMPILER_REWRITE_ENGINE_H_
#define FUSION_COMPILER_REWRITE_ENGINE_H_

#include <vector>

#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {

absl::StatusOr<Result> RewriteWith(const ecg::Graph& graph, const std::vector<Rule>& rules, const Options& options);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_ENGINE_H_
