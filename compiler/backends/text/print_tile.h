// Prints a register tile as straight-line code: one named variable for each accumulator (a rolled loop would put the
// tile on the stack), shared vectors loaded once for each step, one broadcast for each row, then the epilogue over the
// finished tile.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// `tile`: the step's strategy.
void PrintTile(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
               const TaskShape& shape, int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_
