// Distances between floating-point numbers, counted in representable numbers.
#ifndef FUSION_CLIENT_LOCAL_ULPS_H_
#define FUSION_CLIENT_LOCAL_ULPS_H_

#include <cstdint>
#include <vector>

#include "runtime/base/dtype.h"

namespace fusion {

// How many steps from one representable number to the next lead from `a` to `b`; the two zeros are one number. Both are
// finite and values of `dtype`, a floating-point type.
uint64_t UlpDistance(DType dtype, double a, double b);

// The smallest number of full precision.
double SmallestNormal(DType dtype);

// The distance that 99.9% of `count` elements do not exceed. `nonzero`: the distances that are not 0, reordered here.
uint64_t Percentile999(std::vector<uint64_t>* nonzero, int64_t count);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_ULPS_H_
