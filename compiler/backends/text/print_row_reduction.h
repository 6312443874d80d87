// Prints a reduction along a contiguous row in vectors: sums, products and extreme values, and the best element with
// its index (ArgMax). One work-item reduces each row.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_ROW_REDUCTION_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_ROW_REDUCTION_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

void PrintRowReduction(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape,
                       int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_ROW_REDUCTION_H_
