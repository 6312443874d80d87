// The results of operations on single values, for the folding of constants and for the interpreter. All float types
// compute in double, signed integers in int64_t, and unsigned integers and bool in uint64_t; callers round or wrap the
// result to the type.
#ifndef FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_
#define FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace fusion::te {

// One of these forms, or none where the operation is not defined on T.
template <typename T>
struct ValueFn {
  T (*unary)(T) = nullptr;
  T (*binary)(T, T) = nullptr;
  T (*shift)(T, T, int64_t bits) = nullptr;  // of a type of this many bits
  bool (*test)(T) = nullptr;
  bool (*compare)(T, T) = nullptr;

  constexpr bool Defined() const { return unary || binary || shift || test || compare; }
};

struct OpValue {
  ValueFn<double> floats;
  ValueFn<int64_t> signed_ints;
  ValueFn<uint64_t> unsigned_ints;

  template <typename T>
  constexpr const ValueFn<T>& On() const {
    if constexpr (std::is_same_v<T, double>) {
      return floats;
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return signed_ints;
    } else {
      return unsigned_ints;
    }
  }
};

namespace values {

// Takes a function without captures. Its number of arguments and its result tell which form it is.
template <typename T, typename F>
constexpr ValueFn<T> FormOf(F f) {
  ValueFn<T> form;
  if constexpr (std::is_invocable_v<F, T>) {
    if constexpr (std::is_same_v<std::invoke_result_t<F, T>, bool>) {
      form.test = f;
    } else {
      form.unary = f;
    }
  } else if constexpr (std::is_invocable_v<F, T, T>) {
    if constexpr (std::is_same_v<std::invoke_result_t<F, T, T>, bool>) {
      form.compare = f;
    } else {
      form.binary = f;
    }
  } else {
    form.shift = f;
  }
  return form;
}

template <typename F>
constexpr OpValue Floats(F f) {
  return {FormOf<double>(f), {}, {}};
}
template <typename F>
constexpr OpValue Integers(F f) {  // and bool
  return {{}, FormOf<int64_t>(f), FormOf<uint64_t>(f)};
}
template <typename F, typename G>
constexpr OpValue FloatsAndIntegers(F floats, G integers) {
  return {FormOf<double>(floats), FormOf<int64_t>(integers), FormOf<uint64_t>(integers)};
}
template <typename F>
constexpr OpValue Numbers(F f) {
  return FloatsAndIntegers(f, f);
}

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

}  // namespace values
}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_
