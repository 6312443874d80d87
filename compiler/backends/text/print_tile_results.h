// Prints what follows the reduction of a register tile: the epilogue over the finished accumulators, which are the
// variables c<row>_<vector>, and the stores of the results.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_RESULTS_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_RESULTS_H_

#include <string>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

struct TileResults {
  int rows = 1, vectors = 1;
  std::string first_row;  // text of the first row's coordinate
};

// `tile`: the step's strategy.
void PrintTileResults(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
                      const TaskShape& shape, const TileResults& results, int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TILE_RESULTS_H_
