// Prints a kTile step: straight-line accumulators (one named variable each: a rolled loop would put the tile on the
// stack), shared vectors loaded once per step, one broadcast per row, then the epilogue over the finished tile.
#ifndef FUSION_COMPILER_BACKENDS_CPU_PRINT_TILE_H_
#define FUSION_COMPILER_BACKENDS_CPU_PRINT_TILE_H_

#include "compiler/backends/cpu/expr_printer.h"

namespace fusion::cpu {

void PrintTile(const movement::Kernel& kernel, const movement::Step& step, int64_t lanes, int* next_temp,
               CodeWriter* out);

}  // namespace fusion::cpu

#endif  // FUSION_COMPILER_BACKENDS_CPU_PRINT_TILE_H_
