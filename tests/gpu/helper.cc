// The parts of check.py that are in C++: filling and comparing the elements of a bundle's tensors. check.py builds this
// file and calls it through ctypes.
#include <math.h>
#include <stdint.h>
#include <string.h>

namespace {

float FromHalf(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                     : exponent == 0 ? ldexpf(static_cast<float>(fraction), -24)
                                     : ldexpf(static_cast<float>(1024 + fraction), exponent - 25);
  return bits >> 15 != 0 ? -size : size;
}

float FromBits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

uint64_t Next(uint64_t* state) {  // SplitMix64
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

// f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool
enum { kF32, kF64, kF16, kBF16, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kBool };

double At(const void* data, int dtype, int64_t i) {
  switch (dtype) {
    case kF32:
      return static_cast<const float*>(data)[i];
    case kF64:
      return static_cast<const double*>(data)[i];
    case kF16:
      return FromHalf(static_cast<const uint16_t*>(data)[i]);
    case kBF16:
      return FromBits(static_cast<uint32_t>(static_cast<const uint16_t*>(data)[i]) << 16);
    case kI8:
      return static_cast<const int8_t*>(data)[i];
    case kI16:
      return static_cast<const int16_t*>(data)[i];
    case kI32:
      return static_cast<const int32_t*>(data)[i];
    case kI64:
      return static_cast<double>(static_cast<const int64_t*>(data)[i]);
    case kU16:
      return static_cast<const uint16_t*>(data)[i];
    case kU32:
      return static_cast<const uint32_t*>(data)[i];
    case kU64:
      return static_cast<double>(static_cast<const uint64_t*>(data)[i]);
    default:
      return static_cast<const uint8_t*>(data)[i];
  }
}

}  // namespace

extern "C" {

// Fills floats with values in [-1, 1), integers and bools with 0 or 1, so that every index is valid.
void fill(void* data, int dtype, int64_t count, uint64_t seed) {
  const int64_t bytes = dtype == kF64 || dtype == kI64 || dtype == kU64                    ? 8
                        : dtype == kF32 || dtype == kI32 || dtype == kU32                  ? 4
                        : dtype == kF16 || dtype == kBF16 || dtype == kI16 || dtype == kU16 ? 2
                                                                                           : 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t random = Next(&seed);
    const double real = static_cast<double>(random >> 11) * 0x1p-52 - 1;
    char* place = static_cast<char*>(data) + i * bytes;
    if (dtype == kF32) {
      const float value = static_cast<float>(real);
      memcpy(place, &value, 4);
    } else if (dtype == kF64) {
      memcpy(place, &real, 8);
    } else if (dtype == kF16 || dtype == kBF16) {
      const uint16_t bits = static_cast<uint16_t>((dtype == kF16 ? 0x3800 : 0x3f00) | (random & 0x807f));  // around ±0.5
      memcpy(place, &bits, 2);
    } else {
      const uint64_t bit = random & 1;
      memcpy(place, &bit, static_cast<size_t>(bytes));
    }
  }
}

// Returns how far `actual` is from `expected`, as a multiple of the tolerance relative*|expected| + absolute*max(1,
// largest |expected|); above 1 it is wrong. NaN is equal to NaN, an infinity to itself. For integers, whose `relative`
// is 0, returns the difference.
double distance(const void* expected, const void* actual, int dtype, int64_t count, double relative, double absolute) {
  double largest = 1, worst = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double e = fabs(At(expected, dtype, i));
    if (isfinite(e) && e > largest) largest = e;
  }
  for (int64_t i = 0; i < count; ++i) {
    const double e = At(expected, dtype, i), a = At(actual, dtype, i);
    if (e == a || (isnan(e) && isnan(a))) continue;
    double error = INFINITY;
    if (isfinite(e) && isfinite(a)) error = fabs(a - e) / (relative == 0 ? 1 : relative * fabs(e) + absolute * largest);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

}  // extern "C"
