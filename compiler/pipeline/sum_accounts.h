// SumAccounts: the account of a bundle from those of its specialisations.
#ifndef FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_
#define FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_

#include <string>
#include <vector>

#include "compiler/pipeline/compile.h"

namespace fusion {

// Counts and times are sums, except the model's own; `plan_json` holds all plans. What writing the bundle fills in is
// 0. `names` and `accounts` are parallel and not empty; one account alone stays as it is.
CompileAccount SumAccounts(const std::vector<std::string>& names, const std::vector<CompileAccount>& accounts);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_SUM_ACCOUNTS_H_
