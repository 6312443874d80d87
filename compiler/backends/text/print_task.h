// Prints what one task of a phase does: its place in the grid, then its steps, one after another.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// The text must define the variable `task`, the task's number.
void PrintTask(const movement::Kernel& kernel, const movement::Phase& phase, const TaskShape& shape, CodeWriter* out);

// Are 32 bits too few for an index of the phase's loops, including the tasks of work-groups of size `group`?
bool NeedsWideIndices(const movement::Phase& phase, int work_group_size);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
