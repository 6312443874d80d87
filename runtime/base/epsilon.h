// Epsilon: the distance from 1 to the next number of a floating-point type.
#ifndef FUSION_RUNTIME_BASE_EPSILON_H_
#define FUSION_RUNTIME_BASE_EPSILON_H_

#include "runtime/base/dtype.h"

namespace fusion {

// Returns the epsilon of f32 for types that are not floating-point.
inline double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF6E2M3:
      return 0x1p-3;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF6E3M2:
      return 0x1p-2;
    case DType::kF4E2M1:
      return 0x1p-1;
    case DType::kF8E8M0:
      return 1;
    default:
      return 0x1p-23;
  }
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_EPSILON_H_
