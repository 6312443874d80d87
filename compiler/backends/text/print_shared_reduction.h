// Prints a reduction whose results are too few for the work-items of a task: teams of them share each result.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_SHARED_REDUCTION_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_SHARED_REDUCTION_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// The number of work-items that share a result of the step's reduction: those that would be idle otherwise, and along a
// contiguous row enough to read it together. 1: results are not shared, or the step is no nest with a reduction.
int ReductionTeam(const movement::Step& step, int work_group_size);

// Prints a step of a row nest that one team of work-items runs (TaskShape::team). Each of them has the values that the
// step stores to registers.
void PrintInRow(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                CodeWriter* out);

void PrintSharedReduction(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape,
                          int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_SHARED_REDUCTION_H_
