// Distances between floating-point numbers, counted in representable numbers.
#ifndef FUSION_RUNTIME_VERDICT_ULPS_H_
#define FUSION_RUNTIME_VERDICT_ULPS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace fusion {

// Counts the steps from one representable number to the next that lead from `a` to `b`; the two zeros are one number.
// Both must be finite values of `dtype`, a floating-point type.
uint64_t UlpDistance(DType dtype, double a, double b);

// The smallest number with full precision.
double SmallestNormal(DType dtype);

// Returns the distance that 99.9% of `count` elements do not exceed. `nonzero` holds the distances that are not 0; it
// is reordered.
uint64_t Percentile999(std::vector<uint64_t>* nonzero, int64_t count);

}  // namespace fusion

#endif  // FUSION_RUNTIME_VERDICT_ULPS_H_
