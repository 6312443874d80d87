// Prints a step that is no tile: a scalar nest, a vector map, a reduction along a contiguous row, or a prefix
// reduction.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_NEST_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_NEST_H_

#include <string>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

void PrintNest(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out);

// Prints and stores the results of a reduction at the point where the step's loops are: `then` of the accumulators.
void PrintResult(const movement::Kernel& kernel, const movement::Step& step, const std::string& acc, int* next_temp,
                 CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_NEST_H_
