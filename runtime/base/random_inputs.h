// Seeded tensors: the same bytes for the same (dtype, shape, seed) on every machine.
#ifndef FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_
#define FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_

#include <cstdint>

#include "runtime/base/tensor.h"

namespace fusion {

// Floats uniform in [-1, 1); integers uniform in [0, integer_limit), small because they are often indices; bools 0
// or 1. The caller has checked the shape (CheckedSizeBytes). integer_limit >= 1.
Tensor RandomTensor(DType dtype, const Shape& shape, uint64_t seed, int64_t integer_limit = 2);

// A seed for the `index`-th tensor of a set drawn from one seed.
uint64_t DeriveSeed(uint64_t seed, uint64_t index);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_RANDOM_INPUTS_H_
