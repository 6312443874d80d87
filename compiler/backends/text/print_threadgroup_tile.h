// Prints a threadgroup tile: accumulators in a small array that unrolled loops turn into
// registers, K-slices of the operands that the whole work-group copies to shared memory, and the epilogue at each
// result.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_THREADGROUP_TILE_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_THREADGROUP_TILE_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// `tile` is the step's strategy, and `shape.work_group_size` must be the step's work-group size.
void PrintThreadgroupTile(const movement::Kernel& kernel, const movement::Step& step,
                          const movement::ThreadgroupTile& tile, const TaskShape& shape, int* next_temp,
                          CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_THREADGROUP_TILE_H_
