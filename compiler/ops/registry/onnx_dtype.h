// ONNX element type numbers (TensorProto.DataType), as they occur in attributes such as Cast's `to`.
#ifndef FUSION_COMPILER_OPS_REGISTRY_ONNX_DTYPE_H_
#define FUSION_COMPILER_OPS_REGISTRY_ONNX_DTYPE_H_

#include <cstdint>
#include <optional>

#include "runtime/base/dtype.h"

namespace fusion::ops {

// Returns nullopt for types that the compiler does not have (string, complex).
inline std::optional<DType> DTypeFromOnnx(int64_t number) {
  switch (number) {
    case 1:
      return DType::kF32;
    case 2:
      return DType::kU8;
    case 3:
      return DType::kI8;
    case 4:
      return DType::kU16;
    case 5:
      return DType::kI16;
    case 6:
      return DType::kI32;
    case 7:
      return DType::kI64;
    case 9:
      return DType::kBool;
    case 10:
      return DType::kF16;
    case 11:
      return DType::kF64;
    case 12:
      return DType::kU32;
    case 13:
      return DType::kU64;
    case 16:
      return DType::kBF16;
    case 17:
      return DType::kF8E4M3FN;
    case 18:
      return DType::kF8E4M3FNUZ;
    case 19:
      return DType::kF8E5M2;
    case 20:
      return DType::kF8E5M2FNUZ;
    case 21:
      return DType::kU4;
    case 22:
      return DType::kI4;
    case 23:
      return DType::kF4E2M1;
    case 24:
      return DType::kF8E8M0;
    case 25:
      return DType::kU2;
    case 26:
      return DType::kI2;
    case 27:
      return DType::kF6E2M3;
    case 28:
      return DType::kF6E3M2;
    default:
      return std::nullopt;
  }
}

// The inverse of DTypeFromOnnx.
inline int64_t OnnxNumber(DType dtype) {
  for (int64_t number = 1; number <= 28; ++number) {
    if (DTypeFromOnnx(number) == dtype) return number;
  }
  return 0;
}

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_REGISTRY_ONNX_DTYPE_H_
