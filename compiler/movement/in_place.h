// In-place results: which argument may a kernel overwrite while it reads it? Only the printer and the memory plan
// decide by this, and both use this one predicate.
#ifndef FUSION_COMPILER_MOVEMENT_IN_PLACE_H_
#define FUSION_COMPILER_MOVEMENT_IN_PLACE_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

struct InPlacePair {
  int out = -1, in = -1;  // kernel-scope buffers
};

// Returns the pairs for which the kernel computes the same whether or not `out` and `in` are the same memory:
// - Both have the same type and size.
// - Only one step reads `in`, and it stores each element of `out` once.
// - It stores at the address from which it has read `in` before.
// A kernel with phase loops has none: the next iteration may read `in` again.
//
// A residual added in a product's epilogue is the common case: it saves one stream. Whether the value in `in` is needed
// afterwards is the caller's question. Buffers of a pair must not be declared __restrict.
std::vector<InPlacePair> InPlacePairs(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_IN_PLACE_H_
