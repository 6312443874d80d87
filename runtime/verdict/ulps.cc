#include "runtime/verdict/ulps.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/base/epsilon.h"

namespace fusion {
namespace {

int LeastExponent(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return -1022;
    case DType::kF16:
      return -14;
    default:
      return -126;
  }
}

// Counts the representable numbers above zero and up to `value`; negative below zero.
int64_t Steps(DType dtype, double value) {
  const int mantissa_bits = -std::ilogb(Epsilon(dtype));
  const double magnitude = std::abs(value);
  int64_t steps;
  if (magnitude < SmallestNormal(dtype)) {
    steps = static_cast<int64_t>(std::ldexp(std::ldexp(magnitude, mantissa_bits), -LeastExponent(dtype)));
  } else {
    int64_t bits;
    std::memcpy(&bits, &magnitude, sizeof bits);
    steps = (bits >> (52 - mantissa_bits)) - (int64_t{1023 + LeastExponent(dtype) - 1} << mantissa_bits);
  }
  return value < 0 ? -steps : steps;
}

}  // namespace

double SmallestNormal(DType dtype) { return std::ldexp(1.0, LeastExponent(dtype)); }

uint64_t UlpDistance(DType dtype, double a, double b) {
  const int64_t x = Steps(dtype, a), y = Steps(dtype, b);
  return static_cast<uint64_t>(std::max(x, y)) - static_cast<uint64_t>(std::min(x, y));
}

uint64_t Percentile999(std::vector<uint64_t>* nonzero, int64_t count) {
  // The rank, from 0, of the least distance that at most a thousandth of the elements exceed.
  const int64_t rank = count - count / 1000 - 1;
  const int64_t zeros = count - static_cast<int64_t>(nonzero->size());
  if (rank < zeros) return 0;
  const auto place = nonzero->begin() + (rank - zeros);
  std::nth_element(nonzero->begin(), place, nonzero->end());
  return *place;
}

}  // namespace fusion
