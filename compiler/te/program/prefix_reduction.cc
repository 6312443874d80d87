#include "compiler/te/program/prefix_reduction.h"

#include <cstdlib>

namespace fusion::te {
namespace {

// Shorter axes are as fast as ordinary reductions.
constexpr int64_t kLeastExtent = 4;

bool IsIdentity(const ScalarNode& s, ReductionKind kind) {
  if (s.kind != ScalarKind::kImm) return false;
  const int64_t identity = kind == ReductionKind::kProd ? 1 : 0;
  return IsFloat(s.dtype) ? s.fvalue == static_cast<double>(identity) : s.ivalue == identity;
}

bool Moves(const Scalar& s, int axis) {
  bool moves = false;
  Visit(s, [&](const ScalarNode& node) {
    moves = moves || (node.kind == ScalarKind::kFromIndex && node.index.UsesAxis(axis));
    for (const Index& index : node.indices) moves = moves || index.UsesAxis(axis);
    for (const Comparison& c : node.pred) moves = moves || c.lhs.UsesAxis(axis) || c.rhs.UsesAxis(axis);
  });
  return moves;
}

}  // namespace

std::optional<PrefixReduction> PrefixReductionOf(const Reduction& reduction, const std::vector<Scalar>& body,
                                                 const std::vector<Axis>& axes) {
  const bool kind = reduction.kind == ReductionKind::kSum || reduction.kind == ReductionKind::kProd;
  if (!kind || reduction.axes.size() != 1 || !reduction.pred.empty() || body.size() != 1) return std::nullopt;
  const ScalarNode& node = *body[0];
  const Axis k = reduction.axes[0];
  if (node.kind != ScalarKind::kIf || node.pred.size() != 1 || !IsIdentity(*node.args[1], reduction.kind) ||
      k.extent < kLeastExtent) {
    return std::nullopt;
  }
  // The test must be ±(k - i) + offset, compared with 0.
  const Comparison& test = node.pred[0];
  if (test.cmp != Cmp::kLt && test.cmp != Cmp::kGe) return std::nullopt;
  const Index difference = test.lhs - test.rhs;
  if (difference.parts().size() != 2 || difference.HasLoad()) return std::nullopt;
  PrefixReduction result;
  result.value = node.args[0];
  int64_t of_k = 0, of_i = 0;
  for (const Index::Part& part : difference.parts()) {
    if (part.term.kind != TermKind::kAxis || std::abs(part.coefficient) != 1) return std::nullopt;
    if (part.term.axis.id == k.id) {
      of_k = part.coefficient;
    } else if (part.term.axis.extent == k.extent) {
      of_i = part.coefficient;
      result.axis = part.term.axis.id;
    }
  }
  bool known = false;
  for (const Axis& axis : axes) known = known || axis.id == result.axis;
  if (!known || of_k == 0 || of_k + of_i != 0 || Moves(result.value, result.axis)) return std::nullopt;
  // The test is k < i + most (from the front), or k >= i + most (from the back).
  const bool less = test.cmp == Cmp::kLt;
  const int64_t most = of_k == 1 ? -difference.constant() : difference.constant() + 1;
  if (most != 0 && most != 1) return std::nullopt;
  result.reverse = less != (of_k == 1);
  result.exclusive = (most == 0) != result.reverse;
  return result;
}

}  // namespace fusion::te
