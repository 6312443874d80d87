#include "runtime/verdict/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/verdict/tied_rows.h"

namespace fusion {

absl::StatusOr<Judgement> JudgeOutputs(const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual,
                                       const std::vector<Tensor>& reference, const ModelRun& run, MadeByRun made_by_run,
                                       const Slack& slack) {
  if (actual.size() != reference.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", actual.size(), " outputs, the reference ", reference.size()));
  }
  ASSIGN_OR_RETURN(OutputsCompared compared, CompareOutputs(actual, reference, slack));
  Judgement judgement{std::move(compared.outputs), std::move(compared.moved_rows), {}};
  const bool any_wrong = std::any_of(judgement.outputs.begin(), judgement.outputs.end(),
                                     [](const Comparison& c) { return c.verdict == Verdict::kWrong; });
  if (!any_wrong) return judgement;
  const std::vector<Tensor>& outputs = made_by_run == MadeByRun::kReference ? reference : compared.actual;
  ASSIGN_OR_RETURN(judgement.movements, Sensitivity(run, inputs, outputs));
  for (size_t i = 0; i < judgement.outputs.size(); ++i) Allow(judgement.movements[i], &judgement.outputs[i]);
  return judgement;
}

}  // namespace fusion
