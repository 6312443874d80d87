// Seeded tensors: the same bytes for the same (dtype, shape, seed) on every machine.
#ifndef FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_
#define FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_

#include <cstdint>

#include "runtime/base/tensor.h"

namespace fusion {

// Floats are uniform in [-1, 1). Integers are uniform in [0, integer_limit), with a small limit because they are often
// indices. Bools are 0 or 1. The caller has checked the shape (CheckedSizeBytes). integer_limit >= 1.
Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, int64_t integer_limit = 2);

// Returns a seed for the `index`-th tensor of a set that is drawn from one seed.
uint64_t DeriveSeed(uint64_t seed, uint64_t index);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_
