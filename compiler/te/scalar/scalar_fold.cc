#include "compiler/te/scalar/scalar_fold.h"

#include <cmath>
#include <optional>

#include "compiler/te/scalar/immediate.h"
#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

// Returns the result for immediates as a T; null where the operation does not compute on it.
template <typename T>
std::optional<T> Computed(const ValueFn<T>& fn, T a, T b) {
  if (fn.unary != nullptr) return fn.unary(a);
  if (fn.binary != nullptr) return fn.binary(a, b);
  return std::nullopt;
}
template <typename T>
std::optional<bool> Decided(const ValueFn<T>& fn, T a, T b) {
  if (fn.test != nullptr) return fn.test(a);
  if (fn.compare != nullptr) return fn.compare(a, b);
  return std::nullopt;
}

Scalar FoldFloats(const OpRow& row, DType dtype, const std::vector<Scalar>& args) {
  const DType in = args[0]->dtype;
  const double a = args[0]->fvalue;
  const double b = args.size() > 1 ? args[1]->fvalue : 0;
  if (!IsExactIn(in, a) || !IsExactIn(in, b)) return nullptr;
  if (const std::optional<bool> truth = Decided(row.value.floats, a, b)) return ImmInt(DType::kBool, *truth);
  // The sign of a zero or NaN result may differ between implementations, so it is left to them.
  if ((row.op == Op::kMin || row.op == Op::kMax) && a == 0 && b == 0) return nullptr;
  const std::optional<double> r = Computed(row.value.floats, a, b);
  return r && !std::isnan(*r) && IsExactIn(dtype, *r) ? Imm(dtype, *r) : nullptr;
}

template <typename T>
Scalar FoldInts(const OpRow& row, DType dtype, const std::vector<Scalar>& args) {
  const T a = static_cast<T>(args[0]->ivalue);
  const T b = args.size() > 1 ? static_cast<T>(args[1]->ivalue) : 0;
  const ValueFn<T>& fn = row.value.On<T>();
  if (const std::optional<bool> truth = Decided(fn, a, b)) return ImmInt(DType::kBool, *truth);
  const std::optional<T> r = Computed(fn, a, b);
  return r ? ImmInt(dtype, static_cast<int64_t>(*r)) : nullptr;
}

// Returns the integer as a number; nullopt where a double does not hold it.
std::optional<double> NumberOf(DType dtype, int64_t x) {
  const double number = dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(x)) : static_cast<double>(x);
  return DoubleToInt(dtype, number) == x ? std::optional(number) : std::nullopt;
}

template <typename T>
std::optional<double> ExactInt(const OpRow& row, DType dtype, double a, double b) {
  const int64_t x = DoubleToInt(dtype, a), y = DoubleToInt(dtype, b);
  if (NumberOf(dtype, x) != a || NumberOf(dtype, y) != b) return std::nullopt;
  const ValueFn<T>& fn = row.value.On<T>();
  if (const std::optional<bool> truth = Decided(fn, static_cast<T>(x), static_cast<T>(y))) return *truth ? 1 : 0;
  const std::optional<T> r = Computed(fn, static_cast<T>(x), static_cast<T>(y));
  return r ? NumberOf(dtype, WrapInt(dtype, static_cast<int64_t>(*r))) : std::nullopt;
}

std::optional<double> ExactFloat(const OpRow& row, DType dtype, double a, double b) {
  if (!IsExactIn(dtype, a) || !IsExactIn(dtype, b)) return std::nullopt;
  if (const std::optional<bool> truth = Decided(row.value.floats, a, b)) return *truth ? 1 : 0;
  const std::optional<double> r = Computed(row.value.floats, a, b);
  if (!r || std::isnan(*r) || !IsExactIn(dtype, *r)) return std::nullopt;
  return row.folds || *r == 0 || *r == 1 || std::isinf(*r) ? r : std::nullopt;
}

}  // namespace

Scalar FoldCall(Op op, DType dtype, const std::vector<Scalar>& args) {
  const OpRow& row = RowOf(op);
  if (row.neutral != nullptr) {
    if (Scalar same = row.neutral(args)) return same;
  }
  if (!row.folds) return nullptr;
  for (const Scalar& arg : args) {
    if (arg->kind != ScalarKind::kImm) return nullptr;
  }
  const DType in = args[0]->dtype;
  if (IsFloat(in)) return FoldFloats(row, dtype, args);
  return IsSigned(in) ? FoldInts<int64_t>(row, dtype, args) : FoldInts<uint64_t>(row, dtype, args);
}

Scalar FoldCast(DType dtype, const ScalarNode& x) {
  if (x.kind != ScalarKind::kImm) return nullptr;
  if (!IsFloat(x.dtype)) {
    if (!IsFloat(dtype)) return ImmInt(dtype, x.ivalue);
    constexpr int64_t kExactInDouble = int64_t{1} << 53;
    if (x.ivalue > kExactInDouble || x.ivalue < -kExactInDouble) return nullptr;
    const double value = static_cast<double>(x.ivalue);
    return IsExactIn(dtype, value) ? Imm(dtype, value) : nullptr;
  }
  if (!IsExactIn(x.dtype, x.fvalue) || std::isnan(x.fvalue)) return nullptr;
  if (IsFloat(dtype)) return IsExactIn(dtype, x.fvalue) ? Imm(dtype, x.fvalue) : nullptr;
  if (dtype == DType::kBool) return ImmInt(dtype, x.fvalue != 0);
  const int64_t value = DoubleToInt(dtype, x.fvalue);
  // Machines differ where the value is out of range.
  const double back =
      dtype == DType::kU64 ? static_cast<double>(static_cast<uint64_t>(value)) : static_cast<double>(value);
  return back == std::trunc(x.fvalue) ? ImmInt(dtype, value) : nullptr;
}

std::optional<double> ExactValue(Op op, DType dtype, double a, double b) {
  const OpRow& row = RowOf(op);
  if (IsFloat(dtype)) return ExactFloat(row, dtype, a, b);
  return IsSigned(dtype) ? ExactInt<int64_t>(row, dtype, a, b) : ExactInt<uint64_t>(row, dtype, a, b);
}

}  // namespace fusion::te
