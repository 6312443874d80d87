// Prints a kGroupTile step: accumulators in a small array that unrolled loops take apart into registers, slices of the
// operands brought in by the whole group, and the epilogue at each result.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_GROUP_TILE_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_GROUP_TILE_H_

#include "compiler/backends/text/print_task.h"

namespace fusion::text {

// The shape's group is the step's.
void PrintGroupTile(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                    CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_GROUP_TILE_H_
