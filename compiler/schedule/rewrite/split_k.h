// Split-K: products of few results and long reductions, on devices of many units whose work-items share tasks. Parts of
// the reduction are computed in parallel and then added, so that units work that the results alone would leave idle.
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_K_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_K_H_

#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/te/program/program.h"

namespace fusion {

// `%c = sum(k<3072) a·b then f` becomes `%p[s<4, …] = sum(k<768) a·b`, `%c = sum(s<4) %p then f`, with partial sums in
// the accumulator's type. Returns nullopt where every product of the program has more tiles than half the device's
// units, or a short reduction.
std::optional<te::Program> SplitK(te::Program program, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_SPLIT_K_H_
