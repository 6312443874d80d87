#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/rule_files.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {

absl::StatusOr<std::vector<Rule>> BuiltInRules() {
  std::vector<Rule> rules;
  for (const RuleFile& file : RuleFiles()) {
    ASSIGN_OR_RETURN(std::vector<Rule> parsed, ParseRules(file.name, file.text));
    for (Rule& rule : parsed) rules.push_back(std::move(rule));
  }
  RETURN_IF_ERROR(CheckRuleSet(rules));
  return rules;
}

}  // namespace fusion::rewrite
