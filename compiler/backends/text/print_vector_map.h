// Prints a map whose innermost loop goes along the lanes: whole vectors, and what is left of a row by the cheapest way
// that touches nothing behind it.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_VECTOR_MAP_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_VECTOR_MAP_H_

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

void PrintVectorMap(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                    CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_VECTOR_MAP_H_
