#include "compiler/te/scalar/pred.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>

namespace fusion::te {
namespace {

// `g·A + r < 0` with 0 <= r < g is `A < 0`: the remainder r does not decide. Returns such comparisons (<, >=) without
// r, and any other comparison unchanged.
Comparison WithoutRemainder(const Comparison& comparison) {
  if (comparison.cmp != Cmp::kLt && comparison.cmp != Cmp::kGe) return comparison;
  const Index d = comparison.lhs - comparison.rhs;
  std::vector<Index::Part> parts = d.parts();
  std::stable_sort(parts.begin(), parts.end(), [](const Index::Part& a, const Index::Part& b) {
    return std::abs(a.coefficient) > std::abs(b.coefficient);
  });
  int64_t g = 0;
  for (size_t kept = 1; kept < parts.size(); ++kept) {
    g = std::gcd(g, parts[kept - 1].coefficient);
    const int64_t shift = ((d.constant() % g) + g) % g;
    const Index rest = Index::FromParts(shift, {parts.begin() + static_cast<std::ptrdiff_t>(kept), parts.end()});
    const Interval range = rest.Range();
    if (range.lo < 0 || range.hi >= g) continue;
    const Index kept_parts = d - rest;
    return {kept_parts - Index(kept_parts.constant()), comparison.cmp, Index(-kept_parts.constant())};
  }
  return comparison;
}

}  // namespace

std::optional<bool> Decide(const Comparison& comparison) {
  const Interval d = (comparison.lhs - comparison.rhs).Range();
  std::optional<bool> less, equal;
  if (d.hi < 0) less = true;
  if (d.lo >= 0) less = false;
  if (d.lo == 0 && d.hi == 0) equal = true;
  if (d.hi < 0 || d.lo > 0) equal = false;
  const bool negated = comparison.cmp == Cmp::kGe || comparison.cmp == Cmp::kNe;
  std::optional<bool> truth = comparison.cmp == Cmp::kLt || comparison.cmp == Cmp::kGe ? less : equal;
  if (truth && negated) truth = !*truth;
  return truth;
}

std::optional<AxisCut> CutOf(const Pred& pred) {
  if (pred.size() != 1 || pred[0].cmp != Cmp::kLt) return std::nullopt;
  const Index d = pred[0].lhs - pred[0].rhs;
  if (d.parts().size() != 1) return std::nullopt;
  const Index::Part& part = d.parts()[0];
  const int64_t k = part.coefficient, c = d.constant();
  if (part.term.kind != TermKind::kAxis || k < 1) return std::nullopt;
  return AxisCut{part.term.axis, c >= 0 ? -(c / k) : (-c + k - 1) / k};
}

Pred Simplify(const Pred& pred, bool* never) {
  *never = false;
  Pred kept;
  for (const Comparison& original : pred) {
    const Comparison c = WithoutRemainder(original);
    const std::optional<bool> truth = Decide(c);
    if (truth == false) *never = true;
    if (truth) continue;
    bool repeated = false;
    for (const Comparison& k : kept) repeated |= k.cmp == c.cmp && k.lhs == c.lhs && k.rhs == c.rhs;
    if (!repeated) kept.push_back(c);
  }
  return kept;
}

Pred Substitute(const Pred& pred, const std::function<const Index*(const Axis&)>& map) {
  Pred out = pred;
  for (Comparison& c : out) c = {Substitute(c.lhs, map), c.cmp, Substitute(c.rhs, map)};
  return out;
}

Pred MapTensors(const Pred& pred, const std::function<TensorId(TensorId)>& map) {
  Pred out = pred;
  for (Comparison& c : out) c = {MapTensors(c.lhs, map), c.cmp, MapTensors(c.rhs, map)};
  return out;
}

}  // namespace fusion::te
