// Arithmetic on single values with the semantics of tensor expressions: integers wrap, division by zero gives 0, minima
// and maxima propagate NaN. The compiler's table of operations and the simulated units of an accelerator compute by it.
#ifndef FUSION_RUNTIME_BASE_NUMBER_OPS_H_
#define FUSION_RUNTIME_BASE_NUMBER_OPS_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace fusion::numbers {

// Integers wrap.
template <typename T>
constexpr T Add(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a + b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <typename T>
constexpr T Sub(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a - b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
template <typename T>
constexpr T Mul(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return a * b;
  else
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
template <typename T>
constexpr T Neg(T a) {
  if constexpr (std::is_floating_point_v<T>)
    return -a;
  else
    return static_cast<T>(-static_cast<uint64_t>(a));
}

// Quotients and remainders of integers, where division by zero gives 0 and the smallest integer wraps.
template <typename T>
constexpr T Quotient(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return Neg(a);
  }
  return b == 0 ? 0 : a / b;
}
template <typename T>
constexpr T Remainder(T a, T b) {  // with the sign of the dividend
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return b == 0 ? 0 : a % b;
}
template <typename T>
constexpr T Modulo(T a, T b) {  // with the sign of the divisor
  const T r = Remainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline double Modulo(double a, double b) {  // with the sign of the divisor, also where the result is zero
  const double r = std::fmod(a, b);
  if (r == 0) return b < 0 ? -0.0 : 0.0;
  return (r < 0) != (b < 0) ? r + b : r;
}

// A NaN operand is the result: where b is NaN, no comparison with it holds.
inline double Max(double a, double b) { return std::isnan(a) || a > b ? a : b; }
inline double Min(double a, double b) { return std::isnan(a) || a < b ? a : b; }

inline double Sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a; }

template <typename T>
constexpr T Power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  uint64_t result = 1, power = static_cast<uint64_t>(base);
  for (uint64_t e = static_cast<uint64_t>(exponent); e != 0; e >>= 1, power *= power) {
    if (e & 1) result *= power;
  }
  return static_cast<T>(result);
}

// Rounds towards zero and saturates; NaN gives 0. The unsigned form gives the bits of a uint64_t.
template <bool kUnsigned>
int64_t SaturateToInt(double a) {
  if constexpr (kUnsigned) {
    if (a >= 9223372036854775808.0)
      return a >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(a));
  }
  if (std::isnan(a)) return 0;
  if (a >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (a <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(a);
}

}  // namespace fusion::numbers

#endif  // FUSION_RUNTIME_BASE_NUMBER_OPS_H_
