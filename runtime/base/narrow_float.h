// Floats of at most 8 bits, as ONNX defines them. A tensor keeps one code per byte; arithmetic is done in f32.
//
// Encoding rounds to the nearest value, ties to the even code, and does not saturate. A value that rounds past the
// largest one becomes an infinity if the format has one, else NaN if it has one, else (formats of 4 and 6 bits) the
// largest value. Code that saturates clamps before it encodes. A format without NaN encodes NaN as 0.
#ifndef FUSION_RUNTIME_BASE_NARROW_FLOAT_H_
#define FUSION_RUNTIME_BASE_NARROW_FLOAT_H_

#include <cstdint>

#include "runtime/base/dtype.h"

namespace fusion {

// The bits of a code are, from the highest: sign, exponent, mantissa. Exponent 0 holds the subnormal numbers.
struct NarrowFormat {
  int exponent_bits, mantissa_bits, bias;
  uint8_t max_code;       // code of the largest finite value
  uint8_t overflow_code;  // code, without the sign, of values that round past the largest one
  uint8_t nan_code;       // 0: the format has no NaN
  bool has_infinity;      // its code is max_code + 1
  bool one_zero;          // the code of -0 is the one NaN ("fnuz": finite, NaN, unsigned zero)

  int sign_bit() const { return exponent_bits + mantissa_bits; }
};

// f8e8m0 has neither sign, mantissa nor zero: code c is 2^(c - 127), and 255 is NaN. It is no NarrowFormat. Its ties
// round up. The caller decides whether negative values and values below 2^-127 become 2^-127 or NaN.
inline bool IsByteFloat(DType dtype) { return dtype >= DType::kF8E4M3FN && dtype <= DType::kF4E2M1; }

// Takes a byte float that is not f8e8m0.
const NarrowFormat& NarrowFormatOf(DType dtype);

// Take any float of at most 8 bits. Bits above a format's own are ignored.
float NarrowToFloat(DType dtype, uint8_t code);
uint8_t FloatToNarrow(DType dtype, float value);

// Returns the largest finite value of the format.
float LargestNarrow(DType dtype);

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_NARROW_FLOAT_H_
