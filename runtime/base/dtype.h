// Element types. Names are the ones every textual form prints: f32, i64, bool, ...
#ifndef FUSION_RUNTIME_BASE_DTYPE_H_
#define FUSION_RUNTIME_BASE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusion {

// The numbers of the enumerators are part of the C API. Each element of a type after kBool takes one byte, however few
// bits the type has: integers are sign-extended, floats are stored as codes (narrow_float.h).
enum class DType : uint8_t {
  kF32,
  kF64,
  kF16,
  kBF16,
  kI8,
  kI16,
  kI32,
  kI64,
  kU8,
  kU16,
  kU32,
  kU64,
  kBool,
  kI4,
  kU4,
  kI2,
  kU2,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kF8E5M2FNUZ,
  kF8E8M0,
  kF6E2M3,
  kF6E3M2,
  kF4E2M1
};
inline constexpr int kNumDTypes = 25;

const char* DTypeName(DType dtype);                      // "f32"
std::optional<DType> ParseDType(std::string_view name);  // inverse of DTypeName
int64_t DTypeBytes(DType dtype);                         // bool is one byte, 0 or 1
int DTypeBits(DType dtype);                              // the bits that a value needs: 4 for i4, 8 for bool

bool IsFloat(DType dtype);        // f32, f64, f16, bf16 and the narrower ones
bool IsNarrowFloat(DType dtype);  // all floats but f32 and f64: read as f32, rounded when they are stored
bool IsSigned(DType dtype);       // floats, i2..i64
inline bool IsInteger(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool; }

// Converts between half-precision bits and float. Rounds to nearest even; keeps subnormals, infinities and NaN.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

// Returns what i4, u4, i2 or u2 keeps of an integer: its low bits, sign-extended for the signed types.
inline int64_t WrapNarrowInt(DType dtype, int64_t value) {
  const int spare = 64 - DTypeBits(dtype);
  const uint64_t high = static_cast<uint64_t>(value) << spare;
  return IsSigned(dtype) ? static_cast<int64_t>(high) >> spare : static_cast<int64_t>(high >> spare);
}
inline bool IsNarrowInt(DType dtype) { return dtype >= DType::kI4 && dtype <= DType::kU2; }

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_DTYPE_H_
