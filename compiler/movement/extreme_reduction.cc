#include "compiler/movement/extreme_reduction.h"

#include <cmath>
#include <cstdint>

#include "compiler/movement/vector_form.h"

namespace fusion::movement {
namespace {

using te::Op;
using te::Scalar;
using te::ScalarKind;

bool IsOp(const Scalar& s, Op op) { return s->kind == ScalarKind::kOp && s->op == op; }
bool IsAcc(const Scalar& s, int acc) { return s->kind == ScalarKind::kAcc && s->acc == acc; }

// Is `s` a value than which no element is worse?
bool IsWorst(const te::ScalarNode& s, bool max) {
  if (s.kind != ScalarKind::kImm) return false;
  if (IsFloat(s.dtype)) return std::isinf(s.fvalue) && (s.fvalue < 0) == max;
  const int bits = DTypeBits(s.dtype);
  if (!IsSigned(s.dtype)) return s.ivalue == (max ? 0 : (int64_t{1} << bits) - 1);
  return s.ivalue == (max ? -(int64_t{1} << (bits - 1)) : (int64_t{1} << (bits - 1)) - 1);
}

// Does `s` test that x is NaN and, where the first of equal elements wins, that the best so far is not NaN?
bool IsNanRule(const Scalar& s, const Scalar& x, bool last) {
  const auto of_x = [&](const Scalar& test) { return IsOp(test, Op::kIsNan) && te::StructurallyEqual(test->args[0], x); };
  if (last) return of_x(s);
  return IsOp(s, Op::kAnd) && of_x(s->args[0]) && IsOp(s->args[1], Op::kNot) &&
         IsOp(s->args[1]->args[0], Op::kIsNan) && IsAcc(s->args[1]->args[0]->args[0], 0);
}

}  // namespace

std::optional<ExtremeReduction> ExtremeReductionOf(const te::Reduction& reduction, const std::vector<Scalar>& body) {
  const bool two = reduction.kind == te::ReductionKind::kGeneral && reduction.axes.size() == 1 &&
                   reduction.pred.empty() && reduction.init.size() == 2 && body.size() == 2;
  if (!two || reduction.axes[0].extent > INT32_MAX || !IsOp(body[0], Op::kSelect) || !IsOp(body[1], Op::kSelect)) {
    return std::nullopt;
  }
  const Scalar &take = body[0]->args[0], &x = body[0]->args[1], &at = body[1]->args[1];
  const te::ScalarNode& first_index = *reduction.init[1];
  const bool form = IsAcc(body[0]->args[2], 0) && IsAcc(body[1]->args[2], 1) &&
                    te::StructurallyEqual(take, body[1]->args[0]) && at->kind == ScalarKind::kFromIndex &&
                    at->index == te::Index(reduction.axes[0]) && first_index.kind == ScalarKind::kImm &&
                    first_index.ivalue == 0;
  const LaneKind lanes = LaneKindOf(x->dtype);
  if (!form || (lanes != LaneKind::kFloat && lanes != LaneKind::kInt)) return std::nullopt;
  bool reads_acc = false;
  te::Visit(x, [&](const te::ScalarNode& node) { reads_acc = reads_acc || node.kind == ScalarKind::kAcc; });
  const Scalar& better = IsFloat(x->dtype) && IsOp(take, Op::kOr) ? take->args[0] : take;
  if (reads_acc || better->kind != ScalarKind::kOp) return std::nullopt;
  ExtremeReduction result;
  result.value = x;
  switch (better->op) {
    case Op::kGt:
    case Op::kGe:
      break;
    case Op::kLt:
    case Op::kLe:
      result.max = false;
      break;
    default:
      return std::nullopt;
  }
  result.last = better->op == Op::kGe || better->op == Op::kLe;
  const bool compares = te::StructurallyEqual(better->args[0], x) && IsAcc(better->args[1], 0);
  const bool nan = !IsFloat(x->dtype) || (IsOp(take, Op::kOr) && IsNanRule(take->args[1], x, result.last));
  if (!compares || !nan || !IsWorst(*reduction.init[0], result.max)) return std::nullopt;
  return result;
}

}  // namespace fusion::movement
