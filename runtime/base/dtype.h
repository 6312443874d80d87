// Element types. Names are the ones every textual form prints: f32, i64, bool, ...
#ifndef FUSION_RUNTIME_BASE_DTYPE_H_
#define FUSION_RUNTIME_BASE_DTYPE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace fusion {

enum class DType : uint8_t { kF32, kF64, kF16, kBF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool };
inline constexpr int kNumDTypes = 13;

const char* DTypeName(DType dtype);                      // "f32"
std::optional<DType> ParseDType(std::string_view name);  // inverse of DTypeName
int64_t DTypeBytes(DType dtype);                         // bool is one byte, 0 or 1

bool IsFloat(DType dtype);   // f32 f64 f16 bf16
bool IsSigned(DType dtype);  // floats and i8..i64
inline bool IsInteger(DType dtype) { return !IsFloat(dtype) && dtype != DType::kBool; }

// Half-precision bits <-> float, round to nearest even, subnormals, infinities and NaN kept.
float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);
float BFloat16ToFloat(uint16_t bits);
uint16_t FloatToBFloat16(float value);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_DTYPE_H_
