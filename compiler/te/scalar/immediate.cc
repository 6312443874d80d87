#include "compiler/te/scalar/immediate.h"

#include <cmath>
#include <limits>

#include "runtime/base/narrow_float.h"

namespace fusion::te {

int64_t WrapInt(DType dtype, int64_t value) {
  switch (dtype) {
    case DType::kI8:
      return static_cast<int8_t>(value);
    case DType::kI16:
      return static_cast<int16_t>(value);
    case DType::kI32:
      return static_cast<int32_t>(value);
    case DType::kU8:
      return static_cast<uint8_t>(value);
    case DType::kU16:
      return static_cast<uint16_t>(value);
    case DType::kU32:
      return static_cast<uint32_t>(value);
    case DType::kBool:
      return value != 0;
    case DType::kI4:
    case DType::kU4:
    case DType::kI2:
    case DType::kU2:
      return WrapNarrowInt(dtype, value);
    default:
      return value;
  }
}

int64_t DoubleToInt(DType dtype, double value) {
  if (dtype == DType::kBool) return value != 0;
  if (std::isnan(value)) return 0;
  constexpr double kTwo63 = 9223372036854775808.0;
  if (dtype == DType::kU64 && value >= kTwo63) {
    if (value >= 2 * kTwo63) return -1;
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  if (value >= kTwo63) return WrapInt(dtype, std::numeric_limits<int64_t>::max());
  if (value < -kTwo63) return WrapInt(dtype, std::numeric_limits<int64_t>::min());
  return WrapInt(dtype, static_cast<int64_t>(value));
}

bool IsExactIn(DType dtype, double value) {
  if (dtype == DType::kF64) return true;
  if (IsByteFloat(dtype)) {  // not all of them have infinities or NaN
    const float f = static_cast<float>(value);
    const float kept = NarrowToFloat(dtype, FloatToNarrow(dtype, f));
    return std::isnan(value) ? std::isnan(kept) : static_cast<double>(kept) == value;
  }
  if (std::isnan(value) || std::isinf(value)) return true;
  if (std::fabs(value) > std::numeric_limits<float>::max()) return false;
  const float f = static_cast<float>(value);
  if (static_cast<double>(f) != value) return false;
  if (dtype == DType::kF16) return HalfToFloat(FloatToHalf(f)) == f;
  if (dtype == DType::kBF16) return BFloat16ToFloat(FloatToBFloat16(f)) == f;
  return true;
}

Scalar Imm(DType dtype, double value) {
  if (!IsFloat(dtype)) return ImmInt(dtype, DoubleToInt(dtype, value));
  auto node = NewNode(ScalarKind::kImm, dtype);
  node->fvalue = value;
  return node;
}

Scalar ImmInt(DType dtype, int64_t value) {
  auto node = NewNode(ScalarKind::kImm, dtype);
  if (IsFloat(dtype)) {
    node->fvalue = static_cast<double>(value);
  } else {
    node->ivalue = WrapInt(dtype, value);
  }
  return node;
}

bool IsImm(const Scalar& s, double value) {
  if (s->kind != ScalarKind::kImm) return false;
  return IsFloat(s->dtype) ? s->fvalue == value : static_cast<double>(s->ivalue) == value;
}

}  // namespace fusion::te
