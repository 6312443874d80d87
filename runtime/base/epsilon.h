// Epsilon: the distance from 1 to the next number of a floating-point type.
#ifndef FUSION_RUNTIME_BASE_EPSILON_H_
#define FUSION_RUNTIME_BASE_EPSILON_H_

#include "runtime/base/dtype.h"

namespace fusion {

// That of f32 for types that are not floating-point.
inline double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_EPSILON_H_
