// Sums over rows that lie one behind another (a mean over a sequence): with the sums in registers each strip of columns
// would walk through all rows, another page with each. Beyond the caches a task keeps the sums of many columns in its
// scratch instead, and reads the rows as they lie. So it does within the caches where a register tile is impossible (a
// row times a matrix whose rows are no whole vectors). Weights are no such rows: they are packed strip by strip.
#ifndef FUSION_COMPILER_SCHEDULE_COLUMN_FOLDS_H_
#define FUSION_COMPILER_SCHEDULE_COLUMN_FOLDS_H_

#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest.h"

namespace fusion {

struct ColumnSums {
  movement::Phase phase;
  std::optional<Nest> rest;  // where rows are shared out among tasks: what adds the tasks' sums, in a phase behind
};

enum class SummedRows { kBeyondCaches, kAnywhere };

// The nest's sums, in new buffers of the kernel. nullopt, and nothing changed, where the nest is no such sum or rows
// stay in the caches and `rows` asks for those beyond. The choice "columns": 1 keeps sums in registers after all.
std::optional<ColumnSums> SumColumns(const Nest& nest, SummedRows rows, const DeviceModel& device,
                                     movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_COLUMN_FOLDS_H_
