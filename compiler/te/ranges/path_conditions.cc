#include "compiler/te/ranges/path_conditions.h"

#include <algorithm>

namespace fusion::te {
namespace {

constexpr int64_t kFar = int64_t{1} << 60;

int64_t Clamp(__int128 x) { return static_cast<int64_t>(std::clamp<__int128>(x, -kFar, kFar)); }

Interval Add(Interval a, Interval b) { return {Clamp(__int128{a.lo} + b.lo), Clamp(__int128{a.hi} + b.hi)}; }

Interval Times(Interval a, int64_t c) {
  const int64_t x = Clamp(__int128{a.lo} * c), y = Clamp(__int128{a.hi} * c);
  return {std::min(x, y), std::max(x, y)};
}

int64_t FloorOf(int64_t a, int64_t b) { return a / b - (a % b < 0); }  // b > 0

Interval Intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }

Index OfTerm(const Term& term) { return Index::FromParts(0, {{term, 1}}); }

}  // namespace

void PathConditions::Assume(const Comparison& c) {
  const Index difference = c.lhs - c.rhs;
  if (c.cmp == Cmp::kLt) at_most_zero_.push_back(difference + 1);
  if (c.cmp == Cmp::kEq) at_most_zero_.push_back(difference);
  if (c.cmp == Cmp::kGe || c.cmp == Cmp::kEq) at_most_zero_.push_back(difference * -1);
  Propagate();
}

void PathConditions::Assume(const Pred& pred) {
  for (const Comparison& c : pred) Assume(c);
}

void PathConditions::AssumeNot(const Pred& pred) {
  static constexpr Cmp kNegated[] = {Cmp::kGe, Cmp::kLt, Cmp::kNe, Cmp::kEq};
  if (pred.size() == 1) Assume(Comparison{pred[0].lhs, kNegated[static_cast<int>(pred[0].cmp)], pred[0].rhs});
}

// From c0 + Σ c_i·t_i <= 0: c_j·t_j <= −c0 − Σ_{i≠j} min(c_i·t_i).
void PathConditions::Propagate() {
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds; ++round) {
    for (const Index& sum : at_most_zero_) {
      for (const Index::Part& part : sum.parts()) {
        int64_t others = sum.constant();
        for (const Index::Part& other : sum.parts()) {
          if (&other == &part) continue;
          others = Clamp(__int128{others} + Times(RangeOfTerm(other.term, 1), other.coefficient).lo);
        }
        Interval bound{-kFar, kFar};
        if (part.coefficient > 0) {
          bound.hi = FloorOf(-others, part.coefficient);
        } else {
          bound.lo = -FloorOf(-others, -part.coefficient);
        }
        const Index term = OfTerm(part.term);
        auto it = std::find_if(terms_.begin(), terms_.end(), [&](const auto& known) { return known.first == term; });
        if (it == terms_.end()) it = terms_.insert(terms_.end(), {term, bound});
        it->second = Intersect(it->second, bound);
      }
    }
  }
}

// (y // a) % b is (y % ab) // a, and a condition may bound y % ab.
Interval PathConditions::RangeOfSplitMod(const Term& mod) const {
  Interval range{0, mod.divisor - 1};
  for (const auto& [known, bound] : terms_) {
    const Term& term = known.parts()[0].term;
    if (term.kind != TermKind::kMod || term.divisor % mod.divisor != 0) continue;
    const int64_t a = term.divisor / mod.divisor;
    if (a == 1 || !(FloorDiv(*term.inner, a) == *mod.inner)) continue;
    const Interval whole = Intersect({0, term.divisor - 1}, bound);
    range = Intersect(range, {FloorOf(whole.lo, a), FloorOf(whole.hi, a)});
  }
  return range;
}

Interval PathConditions::RangeOfTerm(const Term& term, int depth) const {
  Interval range;
  switch (term.kind) {
    case TermKind::kAxis:
      range = {0, term.axis.extent - 1};
      break;
    case TermKind::kLoad:
      range = {Clamp(term.load_range.lo), Clamp(term.load_range.hi)};
      break;
    case TermKind::kFloorDiv: {
      const Interval inner = RangeOf(*term.inner, depth);
      range = {FloorOf(inner.lo, term.divisor), FloorOf(inner.hi, term.divisor)};
      break;
    }
    case TermKind::kMod: {
      const Interval inner = RangeOf(*term.inner, depth);
      const int64_t block = FloorOf(inner.lo, term.divisor);
      range = {0, term.divisor - 1};
      if (block == FloorOf(inner.hi, term.divisor)) {
        range = {inner.lo - block * term.divisor, inner.hi - block * term.divisor};
      }
      range = Intersect(range, RangeOfSplitMod(term));
      break;
    }
  }
  if (terms_.empty()) return range;
  const Index single = OfTerm(term);
  for (const auto& [known, bound] : terms_) {
    if (known == single) return Intersect(range, bound);
  }
  return range;
}

Interval PathConditions::RangeOfSum(const Index& x, int depth) const {
  Interval sum{Clamp(x.constant()), Clamp(x.constant())};
  for (const Index::Part& part : x.parts()) {
    const Interval term = RangeOfTerm(part.term, depth);
    if (term.lo > term.hi) return {1, 0};
    sum = Add(sum, Times(term, part.coefficient));
  }
  return sum;
}

Interval PathConditions::RangeOf(const Index& x, int depth) const {
  Interval range = Intersect(x.Range(), RangeOfSum(x, depth));
  if (depth == 0) return range;
  constexpr size_t kMaxConditions = 12;  // nested // and % multiply the work
  for (size_t f = 0; f < std::min(at_most_zero_.size(), kMaxConditions); ++f) {
    const Index& e = at_most_zero_[f];  // x + e <= x <= x - e
    range = Intersect(range, {RangeOfSum(x + e, depth - 1).lo, RangeOfSum(x - e, depth - 1).hi});
  }
  return range;
}

}  // namespace fusion::te
