// JudgeOutputs: what `verify` says of a model's outputs, from the fixed tolerance to the model's own conditioning.
#ifndef FUSION_CLIENT_LOCAL_JUDGE_H_
#define FUSION_CLIENT_LOCAL_JUDGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/local/compare.h"
#include "client/local/sensitivity.h"
#include "runtime/base/tensor.h"

namespace fusion {

enum class MadeByRun { kReference, kActual };

struct Judgement {
  std::vector<Comparison> outputs;
  std::vector<int64_t> moved_rows;  // parallel: rows that tie, in another order than the reference's
  std::vector<Movement> movements;  // parallel; empty where the tolerance answered
};

// Compares, with rows that tie matched (tied_rows.h); what is wrong then is held against what the model itself moves
// by (sensitivity.h). `run`: the model, for inputs near `inputs`, with as many outputs as `reference`; it is called only
// if something is wrong. It is what made `made_by_run`: the reference, or where that cannot run again, the program that
// is judged.
absl::StatusOr<Judgement> JudgeOutputs(const std::vector<Tensor>& inputs, const std::vector<Tensor>& actual,
                                       const std::vector<Tensor>& reference, const ModelRun& run,
                                       MadeByRun made_by_run, const Slack& slack);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_JUDGE_H_
