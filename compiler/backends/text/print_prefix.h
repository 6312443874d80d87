// Prints a prefix reduction (CumSum): one pass along the innermost loop, which stores what has been reduced so far.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_PREFIX_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_PREFIX_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

void PrintPrefix(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                 CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_PREFIX_H_
