// In-place results: which argument a kernel may overwrite while it reads it. The printer, the memory plan and nobody
// else decide by this one predicate.
#ifndef FUSION_COMPILER_MOVEMENT_IN_PLACE_H_
#define FUSION_COMPILER_MOVEMENT_IN_PLACE_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

struct InPlacePair {
  int out = -1, in = -1;  // kernel-scope buffers
};

// Pairs for which the kernel computes the same whether or not `out` and `in` are the same memory: equal type and size;
// `in` is read by one step only, which stores each element of `out` once, at the address from which it read `in`, and
// after that. A residual added in a product's epilogue is the common case: one stream less. Whether the value in `in`
// is needed afterwards is the caller's question. Buffers of a pair must not be declared __restrict.
std::vector<InPlacePair> InPlacePairs(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_IN_PLACE_H_
