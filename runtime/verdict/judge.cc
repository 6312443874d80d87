#include "runtime/verdict/judge.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/verdict/tied_rows.h"

namespace fusion {
namespace {

bool AnyWrong(const std::vector<Comparison>& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [](const Comparison& c) { return c.verdict == Verdict::kWrong; });
}

// Is what is wrong little enough that more runs may explain it?
bool LittleIsWrong(const std::vector<Comparison>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(), [](const Comparison& c) {
    return c.verdict != Verdict::kWrong || (c.special_mismatches == 0 && c.max_rel_err <= kMostTolerance);
  });
}

}  // namespace

absl::StatusOr<Judgement> JudgeOutputs(const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual,
                                       const std::vector<Tensor>& reference, const ModelRun& run, MadeByRun made_by_run,
                                       const Slack& slack) {
  if (actual.size() != reference.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", actual.size(), " outputs, the reference ", reference.size()));
  }
  ASSIGN_OR_RETURN(OutputsCompared compared, CompareOutputs(actual, reference, slack));
  Judgement judgement{std::move(compared.outputs), std::move(compared.moved_rows), {}};
  if (!AnyWrong(judgement.outputs)) return judgement;
  const std::vector<Tensor>& outputs = made_by_run == MadeByRun::kReference ? reference : compared.actual;
  const std::vector<Comparison> by_tolerance = judgement.outputs;
  for (const auto& [begin, end] : {std::pair(0, kFewRuns), std::pair(kFewRuns, kManyRuns)}) {
    RETURN_IF_ERROR(AddRuns(run, inputs, outputs, begin, end, &judgement.movements));
    judgement.outputs = by_tolerance;
    for (size_t i = 0; i < judgement.outputs.size(); ++i) Allow(judgement.movements[i], &judgement.outputs[i]);
    if (!AnyWrong(judgement.outputs) || !LittleIsWrong(judgement.outputs)) break;
  }
  return judgement;
}

}  // namespace fusion
