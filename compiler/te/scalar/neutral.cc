#include "compiler/te/scalar/neutral.h"

#include <bit>
#include <cstdint>

namespace fusion::te::neutral {
namespace {

bool IsImmediate(const Scalar& s) { return s->kind == ScalarKind::kImm; }

// Compares bits, so that -0.0 is not 0.0.
bool IsFloatImm(const Scalar& s, double value) {
  return IsImmediate(s) && IsFloat(s->dtype) && std::bit_cast<uint64_t>(s->fvalue) == std::bit_cast<uint64_t>(value);
}
bool IsIntImm(const Scalar& s, int64_t value) { return IsImmediate(s) && !IsFloat(s->dtype) && s->ivalue == value; }
bool IsOne(const Scalar& s) { return IsFloatImm(s, 1.0) || IsIntImm(s, 1); }

}  // namespace

Scalar OfSum(const std::vector<Scalar>& args) {
  const Scalar &a = args[0], &b = args[1];
  if (IsFloatImm(b, -0.0) || IsIntImm(b, 0)) return a;
  if (IsFloatImm(a, -0.0) || IsIntImm(a, 0)) return b;
  return nullptr;
}

Scalar OfDifference(const std::vector<Scalar>& args) {
  return IsFloatImm(args[1], 0.0) || IsIntImm(args[1], 0) ? args[0] : nullptr;
}

Scalar OfProduct(const std::vector<Scalar>& args) {
  const Scalar &a = args[0], &b = args[1];
  if (IsOne(b) || IsIntImm(a, 0)) return a;
  if (IsOne(a) || IsIntImm(b, 0)) return b;
  return nullptr;
}

Scalar OfQuotient(const std::vector<Scalar>& args) { return IsOne(args[1]) ? args[0] : nullptr; }

Scalar OfAnd(const std::vector<Scalar>& args) {
  const Scalar &a = args[0], &b = args[1];
  if (IsIntImm(a, 0) || IsIntImm(b, 1) || a == b) return a;
  if (IsIntImm(b, 0) || IsIntImm(a, 1)) return b;
  return nullptr;
}

Scalar OfOr(const std::vector<Scalar>& args) {
  const Scalar &a = args[0], &b = args[1];
  if (IsIntImm(a, 1) || IsIntImm(b, 0) || a == b) return a;
  if (IsIntImm(b, 1) || IsIntImm(a, 0)) return b;
  return nullptr;
}

Scalar OfNot(const std::vector<Scalar>& args) {
  const ScalarNode& a = *args[0];
  return a.kind == ScalarKind::kOp && a.op == Op::kNot ? a.args[0] : nullptr;
}

Scalar OfSelect(const std::vector<Scalar>& args) {
  if (IsImmediate(args[0])) return args[args[0]->ivalue ? 1 : 2];
  return args[1] == args[2] ? args[1] : nullptr;
}

}  // namespace fusion::te::neutral
