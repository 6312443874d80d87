#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/rule_files.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

absl::StatusOr<std::vector<Rule>> ReadRules() {
  std::vector<Rule> rules;
  for (const RuleFile& file : RuleFiles()) {
    ASSIGN_OR_RETURN(std::vector<Rule> parsed, ParseRules(file.name, file.text));
    for (Rule& rule : parsed) rules.push_back(std::move(rule));
  }
  RETURN_IF_ERROR(CheckRuleSet(rules));
  return rules;
}

}  // namespace

const absl::StatusOr<std::vector<Rule>>& BuiltInRules() {
  static const auto* const kRules = new absl::StatusOr<std::vector<Rule>>(ReadRules());
  return *kRules;
}

absl::StatusOr<std::string> CountRules() {
  std::string table = "| file | lines | rules | exact | reassociates | relaxed |\n|---|---|---|---|---|---|\n";
  for (const RuleFile& file : RuleFiles()) {
    ASSIGN_OR_RETURN(const std::vector<Rule> rules, ParseRules(file.name, file.text));
    std::set<std::string> lines;
    std::map<MathClass, int> by_class;
    for (const Rule& rule : rules) {
      lines.insert(rule.where);
      ++by_class[rule.math_class];
    }
    absl::StrAppend(&table, "| `", std::string(file.name), "` | ", lines.size(), " | ", rules.size(), " | ",
                    by_class[MathClass::kExact], " | ", by_class[MathClass::kReassociates], " | ",
                    by_class[MathClass::kRelaxed], " |\n");
  }
  return table;
}

}  // namespace fusion::rewrite
