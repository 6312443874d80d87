// Column reduction: sums over rows that lie one behind another (a mean over a sequence). With the sums in registers,
// each strip of columns would walk through all rows and touch another page with each. For data beyond the caches a task
// therefore keeps the sums of many columns in its scratch and reads the rows as they lie. It does the same within the
// caches where a register tile is impossible (a row times a matrix whose rows are not whole vectors). Weights are not
// such rows, because they are packed strip by strip.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_COLUMN_REDUCTION_H_
#define FUSION_COMPILER_SCHEDULE_NEST_COLUMN_REDUCTION_H_

#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

struct ColumnSums {
  movement::Phase phase;
  std::optional<Nest> rest;  // set where tasks share out the rows: the nest that adds their sums, in a later phase
};

enum class SummedRows { kBeyondCaches, kAnywhere };

// Computes the nest's sums in new buffers of the kernel. Returns nullopt, and changes nothing, where the nest is no
// such sum, or where `rows` asks for rows beyond the caches and the caches hold them. The choice "columns": 1 keeps the
// sums in registers after all.
std::optional<ColumnSums> ReduceColumns(const Nest& nest, SummedRows rows, const DeviceModel& device,
                                        movement::Kernel* kernel, AxisSource* axes, ChoiceLog* choices);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_COLUMN_REDUCTION_H_
