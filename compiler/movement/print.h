// The text of a kernel, which parse.h reads. Its hash is the key under which measurements and machine code are stored.
#ifndef FUSION_COMPILER_MOVEMENT_PRINT_H_
#define FUSION_COMPILER_MOVEMENT_PRINT_H_

#include <string>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Deterministic text without names: two kernels that print equally compute the same and cost the same.
std::string Print(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_PRINT_H_
