#include "compiler/pipeline/sum_accounts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace fusion {
namespace {

void AddSeconds(const std::vector<StageSeconds>& more, std::vector<StageSeconds>* sum) {
  for (const StageSeconds& stage : more) {
    auto same =
        std::find_if(sum->begin(), sum->end(), [&](const StageSeconds& other) { return other.stage == stage.stage; });
    if (same == sum->end()) {
      sum->push_back(stage);
    } else {
      same->seconds += stage.seconds;
    }
  }
}

}  // namespace

CompileAccount SumAccounts(const std::vector<std::string>& names, const std::vector<CompileAccount>& accounts) {
  CompileAccount sum = accounts[0];
  if (accounts.size() == 1) return sum;
  sum.rewrites.clear();
  sum.alternatives.clear();
  using nlohmann::json;
  json plans = json::array();
  for (size_t i = 0; i < accounts.size(); ++i) {
    const CompileAccount& account = accounts[i];
    sum.specialisations.push_back({names[i], account.kernels, account.exact_only});
    json plan = json::parse(account.plan_json, nullptr, /*allow_exceptions=*/false);
    plans.push_back({{"name", names[i]}, {"plan", plan.is_discarded() ? json() : std::move(plan)}});
    for (const RewriteAccount& rewrite : account.rewrites) {
      sum.rewrites.push_back(rewrite);
      sum.rewrites.back().specialisation = names[i];
    }
    for (const PlanAlternative& alternative : account.alternatives) {
      sum.alternatives.push_back(alternative);
      sum.alternatives.back().specialisation = names[i];
    }
    if (sum.not_compared.empty()) sum.not_compared = account.not_compared;
    if (i == 0) continue;
    for (int64_t CompileAccount::*count :
         {&CompileAccount::nodes_simplified, &CompileAccount::nodes_rewritten, &CompileAccount::kernels,
          &CompileAccount::fused_by_rule, &CompileAccount::fused_by_latency, &CompileAccount::kept_by_latency,
          &CompileAccount::kept_by_rule,
          &CompileAccount::questions, &CompileAccount::from_database, &CompileAccount::measured,
          &CompileAccount::from_model, &CompileAccount::intermediate_bytes_before,
          &CompileAccount::intermediate_bytes_after, &CompileAccount::trials, &CompileAccount::tuned}) {
      sum.*count += account.*count;
    }
    sum.flops += account.flops;
    AddSeconds(account.stages, &sum.stages);
    AddSeconds(account.passes, &sum.passes);
  }
  sum.plan_json = json{{"specialisations", plans}}.dump(1, ' ', false, json::error_handler_t::replace);
  return sum;
}

}  // namespace fusion
