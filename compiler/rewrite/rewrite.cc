#include "compiler/rewrite/rewrite.h"

#include "compiler/rewrite/rule.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {

absl::Status CheckRules() {
  const auto& rules = BuiltInRules();
  return rules.ok() ? absl::OkStatus() : absl::InternalError(rules.status().message());
}

absl::Status CheckRuleId(const std::string& id) {
  RETURN_IF_ERROR(CheckRules());
  return CheckRuleIdIn(*BuiltInRules(), id);
}

absl::StatusOr<Result> Rewrite(const ecg::Graph& graph, const Options& options) {
  RETURN_IF_ERROR(CheckRules());
  return RewriteWith(graph, *BuiltInRules(), options);
}

}  // namespace fusion::rewrite
