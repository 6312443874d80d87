// Prints a blocked transpose: a tile of as many rows as there are lanes is loaded along one loop,
// transposed in registers, and computed and stored along the other. The rest of either loop goes element by element.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TRANSPOSE_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TRANSPOSE_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// `transpose`: the step's strategy.
void PrintTranspose(const movement::Kernel& kernel, const movement::Step& step,
                    const movement::BlockedTranspose& transpose, int64_t lanes, int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TRANSPOSE_H_
