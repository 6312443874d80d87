#include "runtime/base/narrow_float.h"

#include <bit>
#include <cmath>
#include <limits>

namespace fusion {
namespace {

constexpr uint32_t kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000;

// Parallel to the enumerators of DType from kF8E4M3FN on. The empty row is f8e8m0, which is no NarrowFormat.
constexpr NarrowFormat kFormats[] = {
    {4, 3, 7, 0x7e, 0x7f, 0x7f, false, false},   // f8e4m3fn
    {4, 3, 8, 0x7f, 0x80, 0x80, false, true},    // f8e4m3fnuz
    {5, 2, 15, 0x7b, 0x7c, 0x7e, true, false},   // f8e5m2
    {5, 2, 16, 0x7f, 0x80, 0x80, false, true},   // f8e5m2fnuz
    {},                                          // f8e8m0
    {2, 3, 1, 0x1f, 0x1f, 0, false, false},      // f6e2m3
    {3, 2, 3, 0x1f, 0x1f, 0, false, false},      // f6e3m2
    {2, 1, 1, 0x7, 0x7, 0, false, false},        // f4e2m1
};

float PowerToFloat(uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::bit_cast<float>(code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

uint8_t FloatToPower(float value) {
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffff;
  if (magnitude >= 0x7f400000) return 255;  // from 1.5 * 2^127 to NaN
  if (magnitude < 0x00800000) return magnitude >= 0x00600000 ? 1 : 0;
  return static_cast<uint8_t>((magnitude + 0x00400000) >> 23);
}

}  // namespace

const NarrowFormat& NarrowFormatOf(DType dtype) {
  return kFormats[static_cast<int>(dtype) - static_cast<int>(DType::kF8E4M3FN)];
}

float NarrowToFloat(DType dtype, uint8_t code) {
  if (dtype == DType::kF8E8M0) return PowerToFloat(code);
  const NarrowFormat& format = NarrowFormatOf(dtype);
  const uint32_t sign = (code >> format.sign_bit()) & 1u;
  const uint32_t magnitude = code & ((1u << format.sign_bit()) - 1);
  const bool nan = format.one_zero ? sign != 0 && magnitude == 0
                                   : format.nan_code != 0 && magnitude > format.max_code + (format.has_infinity ? 1u : 0u);
  const int shift = 23 - format.mantissa_bits;
  uint32_t bits;
  if (nan) return std::bit_cast<float>(kNanBits | (format.one_zero ? 0 : sign << 31));
  if (magnitude > format.max_code) {
    bits = kInfinityBits;
  } else if (magnitude >> format.mantissa_bits == 0) {
    const int lowest = 1 - format.bias - format.mantissa_bits;  // the exponent of code 1
    bits = std::bit_cast<uint32_t>(std::ldexp(static_cast<float>(magnitude), lowest));
  } else {
    bits = (magnitude << shift) + (static_cast<uint32_t>(127 - format.bias) << 23);
  }
  return std::bit_cast<float>(sign << 31 | bits);
}

uint8_t FloatToNarrow(DType dtype, float value) {
  if (dtype == DType::kF8E8M0) return FloatToPower(value);
  const NarrowFormat& format = NarrowFormatOf(dtype);
  const uint32_t bits = std::bit_cast<uint32_t>(value), magnitude = bits & 0x7fffffff;
  const uint32_t sign = (bits >> 31) << format.sign_bit();
  if (magnitude > kInfinityBits) return static_cast<uint8_t>(format.nan_code == 0 ? 0 : format.nan_code | sign);
  const int shift = 23 - format.mantissa_bits;
  uint32_t code;
  if (magnitude < static_cast<uint32_t>(128 - format.bias) << 23) {  // below the least normal value
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), format.bias - 1 + format.mantissa_bits);
    code = static_cast<uint32_t>(std::nearbyint(scaled));
  } else {
    const uint32_t rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1);
    code = (rounded >> shift) - (static_cast<uint32_t>(127 - format.bias) << format.mantissa_bits);
  }
  if (code > format.max_code) code = format.overflow_code;
  return static_cast<uint8_t>(format.one_zero && code == 0 ? 0 : code | sign);
}

float LargestNarrow(DType dtype) {
  return NarrowToFloat(dtype, dtype == DType::kF8E8M0 ? 254 : NarrowFormatOf(dtype).max_code);
}

}  // namespace fusion
