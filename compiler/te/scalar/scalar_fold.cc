#include "compiler/te/scalar/scalar_fold.h"

#include <bit>
#include <cmath>
#include <optional>

#include "compiler/te/scalar/immediate.h"

namespace fusion::te {
namespace {

bool IsImmediate(const Scalar& s) { return s->kind == ScalarKind::kImm; }

// Compares bits, so that -0.0 is not 0.0.
bool IsFloatImm(const Scalar& s, double value) {
  return IsImmediate(s) && IsFloat(s->dtype) && std::bit_cast<uint64_t>(s->fvalue) == std::bit_cast<uint64_t>(value);
}
bool IsIntImm(const Scalar& s, int64_t value) { return IsImmediate(s) && !IsFloat(s->dtype) && s->ivalue == value; }
bool IsOne(const Scalar& s) { return IsFloatImm(s, 1.0) || IsIntImm(s, 1); }

template <typename T>
std::optional<bool> Compare(Op op, T a, T b) {
  switch (op) {
    case Op::kEq:
      return a == b;
    case Op::kNe:
      return a != b;
    case Op::kLt:
      return a < b;
    case Op::kLe:
      return a <= b;
    case Op::kGt:
      return a > b;
    case Op::kGe:
      return a >= b;
    default:
      return std::nullopt;
  }
}

Scalar FoldFloats(Op op, DType dtype, const std::vector<Scalar>& args) {
  const DType in = args[0]->dtype;
  const double a = args[0]->fvalue;
  const double b = args.size() > 1 ? args[1]->fvalue : 0;
  if (!IsExactIn(in, a) || !IsExactIn(in, b)) return nullptr;
  if (std::optional<bool> truth = Compare(op, a, b)) return ImmInt(DType::kBool, *truth);
  double r;
  switch (op) {
    case Op::kAdd:
      r = a + b;
      break;
    case Op::kSub:
      r = a - b;
      break;
    case Op::kMul:
      r = a * b;
      break;
    case Op::kDiv:
      r = a / b;
      break;
    case Op::kMin:
      r = std::isnan(a) || a < b ? a : b;
      break;
    case Op::kMax:
      r = std::isnan(a) || a > b ? a : b;
      break;
    case Op::kNeg:
      r = -a;
      break;
    case Op::kAbs:
      r = std::fabs(a);
      break;
    case Op::kFloor:
      r = std::floor(a);
      break;
    case Op::kCeil:
      r = std::ceil(a);
      break;
    case Op::kSqrt:
      r = std::sqrt(a);
      break;
    case Op::kIsNan:
      return ImmInt(DType::kBool, std::isnan(a));
    case Op::kIsInf:
      return ImmInt(DType::kBool, std::isinf(a));
    default:
      return nullptr;
  }
  // The sign of a zero or NaN result may differ between implementations, so it is left to them.
  if ((op == Op::kMin || op == Op::kMax) && a == 0 && b == 0) return nullptr;
  return !std::isnan(r) && IsExactIn(dtype, r) ? Imm(dtype, r) : nullptr;
}

Scalar FoldInts(Op op, DType dtype, const std::vector<Scalar>& args) {
  const DType in = args[0]->dtype;
  const bool is_signed = IsSigned(in);
  const int64_t a = args[0]->ivalue;
  const int64_t b = args.size() > 1 ? args[1]->ivalue : 0;
  const uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  if (std::optional<bool> truth = is_signed ? Compare(op, a, b) : Compare(op, ua, ub)) {
    return ImmInt(DType::kBool, *truth);
  }
  const bool less = is_signed ? a < b : ua < ub;
  uint64_t r;
  switch (op) {
    case Op::kAdd:
      r = ua + ub;
      break;
    case Op::kSub:
      r = ua - ub;
      break;
    case Op::kMul:
      r = ua * ub;
      break;
    case Op::kDiv:
      if (b == 0) {
        r = 0;
      } else if (is_signed && b == -1) {
        r = -ua;  // the smallest integer wraps
      } else {
        r = is_signed ? static_cast<uint64_t>(a / b) : ua / ub;
      }
      break;
    case Op::kMin:
      r = less ? ua : ub;
      break;
    case Op::kMax:
      r = less ? ub : ua;
      break;
    case Op::kNeg:
      r = -ua;
      break;
    case Op::kAbs:
      r = is_signed && a < 0 ? -ua : ua;
      break;
    case Op::kAnd:
    case Op::kBitAnd:
      r = ua & ub;
      break;
    case Op::kOr:
    case Op::kBitOr:
      r = ua | ub;
      break;
    case Op::kXor:
    case Op::kBitXor:
      r = ua ^ ub;
      break;
    case Op::kNot:
      r = a == 0;
      break;
    case Op::kBitNot:
      r = ~ua;
      break;
    default:
      return nullptr;
  }
  return ImmInt(dtype, static_cast<int64_t>(r));
}

// Removes neutral elements; for floats only those that keep the sign of zero.
Scalar FoldNeutral(Op op, const std::vector<Scalar>& args) {
  const Scalar& a = args[0];
  const Scalar& b = args.back();
  switch (op) {
    case Op::kAdd:
      if (IsFloatImm(b, -0.0) || IsIntImm(b, 0)) return a;
      if (IsFloatImm(a, -0.0) || IsIntImm(a, 0)) return b;
      return nullptr;
    case Op::kSub:
      return IsFloatImm(b, 0.0) || IsIntImm(b, 0) ? a : nullptr;
    case Op::kMul:
      if (IsOne(b) || IsIntImm(a, 0)) return a;
      if (IsOne(a) || IsIntImm(b, 0)) return b;
      return nullptr;
    case Op::kDiv:
      return IsOne(b) ? a : nullptr;
    case Op::kAnd:
      if (IsIntImm(a, 0) || IsIntImm(b, 1) || a == b) return a;
      if (IsIntImm(b, 0) || IsIntImm(a, 1)) return b;
      return nullptr;
    case Op::kOr:
      if (IsIntImm(a, 1) || IsIntImm(b, 0) || a == b) return a;
      if (IsIntImm(b, 1) || IsIntImm(a, 0)) return b;
      return nullptr;
    case Op::kNot:
      return a->kind == ScalarKind::kOp && a->op == Op::kNot ? a->args[0] : nullptr;
    case Op::kSelect:
      if (IsImmediate(a)) return a->ivalue ? args[1] : args[2];
      return args[1] == args[2] ? args[1] : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

Scalar FoldCall(Op op, DType dtype, const std::vector<Scalar>& args) {
  if (Scalar same = FoldNeutral(op, args)) return same;
  for (const Scalar& arg : args) {
    if (!IsImmediate(arg)) return nullptr;
  }
  return IsFloat(args[0]->dtype) ? FoldFloats(op, dtype, args) : FoldInts(op, dtype, args);
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

}  // namespace fusion::te
