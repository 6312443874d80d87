// JudgeOutputs: gives the verdicts of `verify` on a model's outputs. It applies the fixed tolerance first, then the
// model's own conditioning.
#ifndef FUSION_RUNTIME_VERDICT_JUDGE_H_
#define FUSION_RUNTIME_VERDICT_JUDGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/verdict/compare.h"
#include "runtime/verdict/sensitivity.h"

namespace fusion {

enum class MadeByRun { kReference, kActual };

struct Judgement {
  std::vector<Comparison> outputs;
  std::vector<int64_t> moved_rows;  // parallel: number of tied rows in another order than the reference's
  std::vector<Movement> movements;  // parallel; empty if the tolerance sufficed
};

// Compares the outputs after matching rows that tie (tied_rows.h). Outputs that are wrong are then compared with how
// far the model's outputs move on their own (sensitivity.h). `run` runs a model on inputs near `inputs`, with as many
// outputs as `reference`; it is called only if something is wrong. `made_by_run` says which outputs that model made:
// the reference, or the judged program's where the reference cannot run again.
absl::StatusOr<Judgement> JudgeOutputs(const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual,
                                       const std::vector<Tensor>& reference, const ModelRun& run, MadeByRun made_by_run,
                                       const Slack& slack);

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_JUDGE_H_
