#include "runtime/base/dtype.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace fusion {
namespace {
struct Entry {
  const char* name;
  int bytes, bits;
  bool is_float;
  bool is_signed;
};
constexpr Entry kTable[kNumDTypes] = {
    {"f32", 4, 32, true, true},       {"f64", 8, 64, true, true},        {"f16", 2, 16, true, true},
    {"bf16", 2, 16, true, true},      {"i8", 1, 8, false, true},         {"i16", 2, 16, false, true},
    {"i32", 4, 32, false, true},      {"i64", 8, 64, false, true},       {"u8", 1, 8, false, false},
    {"u16", 2, 16, false, false},     {"u32", 4, 32, false, false},      {"u64", 8, 64, false, false},
    {"bool", 1, 8, false, false},     {"i4", 1, 4, false, true},         {"u4", 1, 4, false, false},
    {"i2", 1, 2, false, true},        {"u2", 1, 2, false, false},        {"f8e4m3fn", 1, 8, true, true},
    {"f8e4m3fnuz", 1, 8, true, true}, {"f8e5m2", 1, 8, true, true},      {"f8e5m2fnuz", 1, 8, true, true},
    {"f8e8m0", 1, 8, true, true},     {"f6e2m3", 1, 6, true, true},      {"f6e3m2", 1, 6, true, true},
    {"f4e2m1", 1, 4, true, true},
};
const Entry& Get(DType dtype) { return kTable[static_cast<int>(dtype)]; }
}  // namespace

const char* DTypeName(DType dtype) { return Get(dtype).name; }
int64_t DTypeBytes(DType dtype) { return Get(dtype).bytes; }
int DTypeBits(DType dtype) { return Get(dtype).bits; }
bool IsFloat(DType dtype) { return Get(dtype).is_float; }
bool IsNarrowFloat(DType dtype) { return Get(dtype).is_float && Get(dtype).bits < 32; }
bool IsSigned(DType dtype) { return Get(dtype).is_signed; }

std::optional<DType> ParseDType(std::string_view name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == kTable[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const uint32_t exponent = (bits >> 10) & 31;
  const uint32_t mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;                      // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00;                     // rounds past the largest half
  if (magnitude < 0x38800000) {                                          // subnormal half
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0f;  // * 2^24, exact
    return sign | static_cast<uint16_t>(std::nearbyint(scaled));
  }
  const uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  return sign | static_cast<uint16_t>((rounded >> 13) - (112 << 10));
}

float BFloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t FloatToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace fusion
