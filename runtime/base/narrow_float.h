// Floats of at most 8 bits, as ONNX has them. A tensor keeps one code a byte; arithmetic is done in f32.
//
// Encoding rounds to the nearest value, ties to the even code, and does not saturate: what rounds past the largest
// value becomes an infinity where the format has one, else NaN, else (formats of 4 and 6 bits) the largest value.
// Saturation is a clamp in front of it. NaN becomes 0 in the formats without one.
#ifndef FUSION_RUNTIME_BASE_NARROW_FLOAT_H_
#define FUSION_RUNTIME_BASE_NARROW_FLOAT_H_

#include <cstdint>

#include "runtime/base/dtype.h"

namespace fusion {

// The code's bits, from the highest: sign, exponent, mantissa. Exponent 0 holds subnormals.
struct NarrowFormat {
  int exponent_bits, mantissa_bits, bias;
  uint8_t max_code;       // of the largest finite value
  uint8_t overflow_code;  // of what rounds past it, without its sign
  uint8_t nan_code;       // 0: there is none
  bool has_infinity;      // the code behind the largest value
  bool one_zero;          // the code of -0 is the one NaN ("fnuz": finite, NaN, unsigned zero)

  int sign_bit() const { return exponent_bits + mantissa_bits; }
};

// f8e8m0 has neither sign nor mantissa nor zero: code c is 2^(c - 127), 255 is NaN. It is no NarrowFormat; its ties
// round up, and what is below 2^-127, or negative, becomes 2^-127 or NaN by the caller's choice.
inline bool IsByteFloat(DType dtype) { return dtype >= DType::kF8E4M3FN && dtype <= DType::kF4E2M1; }

// Takes a byte float that is not f8e8m0.
const NarrowFormat& NarrowFormatOf(DType dtype);

// Takes any byte float. Bits above a format's own are ignored.
float NarrowToFloat(DType dtype, uint8_t code);
uint8_t FloatToNarrow(DType dtype, float value);

// The largest finite value.
float LargestNarrow(DType dtype);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_NARROW_FLOAT_H_
