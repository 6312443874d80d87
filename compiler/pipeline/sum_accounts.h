// SumAccounts: makes the account of a bundle from those of its specialisations.
#ifndef FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_
#define FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_

#include <string>
#include <vector>

#include "compiler/api/compile_account.h"

namespace fusion {

// Counts and times are sums, except the model's own counts; `plan_json` holds all plans. Fields that writing the bundle
// fills are 0. `names` and `accounts` are parallel and not empty. A single account is returned unchanged.
CompileAccount SumAccounts(const std::vector<std::string>& names, const std::vector<CompileAccount>& accounts);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_
