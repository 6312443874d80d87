// ONNX element type numbers (TensorProto.DataType), as they occur in attributes such as Cast's `to`.
#ifndef FUSION_COMPILER_OPS_ONNX_DTYPE_H_
#define FUSION_COMPILER_OPS_ONNX_DTYPE_H_

#include <cstdint>
#include <optional>

#include "runtime/base/dtype.h"

namespace fusion::ops {

// nullopt for types the compiler does not have (string, complex, float8).
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
    default:
      return std::nullopt;
  }
}

// The inverse.
inline int64_t OnnxNumber(DType dtype) {
  for (int64_t number = 1; number <= 16; ++number) {
    if (DTypeFromOnnx(number) == dtype) return number;
  }
  return 0;
}

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_ONNX_DTYPE_H_
