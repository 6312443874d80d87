// The results of operations on single values, for the folding of constants and for the interpreter. All float types
// compute in double, signed integers in int64_t, and unsigned integers and bool in uint64_t; callers round or wrap the
// result to the type.
#ifndef FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_
#define FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "runtime/base/number_ops.h"

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

using numbers::Add;
using numbers::Max;
using numbers::Min;
using numbers::Modulo;
using numbers::Mul;
using numbers::Neg;
using numbers::Power;
using numbers::Quotient;
using numbers::Remainder;
using numbers::Sign;
using numbers::Sub;

}  // namespace values
}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_OP_VALUES_H_
