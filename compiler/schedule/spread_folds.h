// Products of few results and long folds, for devices of many units whose work-items share tasks: parts of the fold are
// computed beside each other and then added, so that units work which the results alone would leave idle (split-k).
#ifndef FUSION_COMPILER_SCHEDULE_SPREAD_FOLDS_H_
#define FUSION_COMPILER_SCHEDULE_SPREAD_FOLDS_H_

#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/te/program.h"

namespace fusion {

// `%c = sum(k<3072) a·b then f` becomes `%p[s<4, …] = sum(k<768) a·b`, `%c = sum(s<4) %p then f`, partial sums in the
// accumulator's type. Nothing where no product of the program has fewer tiles than half the device's units, or its fold
// is short.
std::optional<te::Program> SpreadFolds(te::Program program, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SPREAD_FOLDS_H_
