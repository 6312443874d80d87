// Tunes the kernels of a plan: tries schedules for them (compiler/tune) and puts the fastest into the kernel cache.
#ifndef FUSION_COMPILER_MEASURE_FUSION_TUNING_H_
#define FUSION_COMPILER_MEASURE_FUSION_TUNING_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/api/compile_context.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/measure/latency_answers.h"
#include "compiler/tune/budget.h"

namespace fusion {

// Returns how many of the fusion blocks got another kernel. Spends no more than `budget` and than the time that
// `answers` has left for measuring. `runs`, parallel to `blocks`, is how often a run of the model launches each.
absl::StatusOr<int64_t> TuneFusionBlocks(const std::vector<FusionBlock>& fusion_blocks,
                                         const std::vector<int64_t>& runs, const tune::Budget& budget,
                                         const CompileContext& context, KernelCache* kernels, LatencyAnswers* answers);

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_FUSION_TUNING_H_
