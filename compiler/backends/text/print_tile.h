// Prints a kTile step: straight-line accumulators (one named variable each: a rolled loop would put the tile on the
// stack), shared vectors loaded once per step, one broadcast per row, then the epilogue over the finished tile.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_

#include "compiler/backends/text/print_task.h"

namespace fusion::text {

void PrintTile(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_H_
