// Sums, order and the normal form. Substitution, lanes and text: index_ops.cc.
#include "compiler/te/index/index.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"

namespace fusion::te {
namespace {

using Part = Index::Part;
using Parts = std::vector<Index::Part>;

// Bounds of unbounded loads saturate here, so that interval sums cannot overflow.
constexpr int64_t kInfinity = int64_t{1} << 61;

int64_t Saturate(__int128 v) {
  return static_cast<int64_t>(std::clamp<__int128>(v, -__int128{kInfinity}, __int128{kInfinity}));
}

int64_t FloorQuotient(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t FloorRemainder(int64_t a, int64_t b) { return a % b + (a % b < 0 ? b : 0); }

template <typename T>
int Order(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int CompareTerms(const Term& a, const Term& b) {
  if (int o = Order(a.kind, b.kind)) return o;
  switch (a.kind) {
    case TermKind::kAxis:
      if (int o = Order(a.axis.id, b.axis.id)) return o;
      return Order(a.axis.extent, b.axis.extent);
    case TermKind::kFloorDiv:
    case TermKind::kMod:
      if (int o = Order(a.divisor, b.divisor)) return o;
      return a.inner == b.inner ? 0 : a.inner->Compare(*b.inner);
    case TermKind::kLoad:
      if (int o = Order(a.tensor, b.tensor)) return o;
      if (int o = Order(a.load_range.lo, b.load_range.lo)) return o;
      if (int o = Order(a.load_range.hi, b.load_range.hi)) return o;
      if (int o = Order(a.indices.size(), b.indices.size())) return o;
      for (size_t i = 0; i < a.indices.size(); ++i) {
        if (int o = a.indices[i].Compare(b.indices[i])) return o;
      }
      return 0;
  }
  return 0;
}

Interval RangeOfTerm(const Term& term) {
  switch (term.kind) {
    case TermKind::kAxis:
      return {0, std::max<int64_t>(term.axis.extent - 1, 0)};
    case TermKind::kFloorDiv: {
      const Interval r = term.inner->Range();
      return {FloorQuotient(r.lo, term.divisor), FloorQuotient(r.hi, term.divisor)};
    }
    case TermKind::kMod:  // a modulo whose argument stays inside one multiple of the divisor is not a term
      return {0, term.divisor - 1};
    case TermKind::kLoad:
      return term.load_range;
  }
  return {};
}

bool TermUses(const Term& term, int axis_id) {
  if (term.kind == TermKind::kAxis) return term.axis.id == axis_id;
  if (term.inner) return term.inner->UsesAxis(axis_id);
  return std::any_of(term.indices.begin(), term.indices.end(), [&](const Index& i) { return i.UsesAxis(axis_id); });
}

// Sets *block to k and returns true when every value of x lies in one interval [k·c, (k+1)·c).
bool InOneBlock(const Index& x, int64_t c, int64_t* block) {
  const Interval r = x.Range();
  *block = FloorQuotient(r.lo, c);
  return FloorQuotient(r.hi, c) == *block;
}

Index TermOf(TermKind kind, Index inner, int64_t divisor) {
  Term term;
  term.kind = kind;
  term.inner = std::make_shared<const Index>(std::move(inner));
  term.divisor = divisor;
  return Index::FromParts(0, {{std::move(term), 1}});
}

// Returns whether every non-constant part of factor·q occurs in `parts` with exactly that coefficient.
bool Contains(const Parts& parts, const Index& q, int64_t factor) {
  if (q.IsConstant() || q.parts().size() > parts.size()) return false;
  for (const Part& want : q.parts()) {
    const auto it = std::lower_bound(parts.begin(), parts.end(), want,
                                     [](const Part& a, const Part& b) { return CompareTerms(a.term, b.term) < 0; });
    if (it == parts.end() || it->coefficient != factor * want.coefficient || CompareTerms(it->term, want.term) != 0) {
      return false;
    }
  }
  return true;
}

// Terms of a sum and an expression that equals them.
struct Identity {
  Parts removed;  // whole parts of the sum
  int64_t removed_constant = 0;
  Index replacement;

  void Remove(const Index& x, int64_t factor) {
    for (const Part& p : x.parts()) removed.push_back({p.term, p.coefficient * factor});
    removed_constant += x.constant() * factor;
  }
};

// Finds an identity that makes a sum shorter. Each removes at least one term, which is why FromParts ends:
//   k·c·(x//c) + k·(x%c) → k·x               k·x − k·c·(x//c) → k·(x%c)
//   k·(x%c) − k·x → −k·c·(x//c)              k·a·((u + v//a)%b) + k·(v%a) → k·((a·u + v)%(a·b))
bool Recombine(const Parts& parts, Identity* found) {
  for (const Part& p : parts) {
    if (p.term.kind != TermKind::kFloorDiv && p.term.kind != TermKind::kMod) continue;
    const Index& x = *p.term.inner;
    const int64_t c = p.term.divisor;
    const int64_t k = p.coefficient;
    if (p.term.kind == TermKind::kFloorDiv) {
      if (k % c != 0 || !Contains(parts, x, -k / c)) continue;
      found->removed.push_back(p);
      found->Remove(x, -k / c);
      found->replacement = Mod(x, c) * (-k / c);
      return true;
    }
    int64_t kc;
    if (__builtin_mul_overflow(k, c, &kc)) continue;
    if (Contains(parts, x, -k)) {
      found->removed.push_back(p);
      found->Remove(x, -k);
      found->replacement = FloorDiv(x, c) * -kc;
      return true;
    }
    const bool quotient_possible =
        std::any_of(parts.begin(), parts.end(), [&](const Part& o) { return &o != &p && o.coefficient % kc == 0; });
    if (!quotient_possible) continue;
    const Index q = FloorDiv(x, c);
    if (Contains(parts, q, kc)) {
      found->removed.push_back(p);
      found->Remove(q, kc);
      found->replacement = x * k;
      return true;
    }
    for (const Part& o : parts) {
      if (o.term.kind != TermKind::kMod || o.coefficient != kc || !Contains(o.term.inner->parts(), q, 1)) continue;
      if (o.term.divisor > kInfinity / c) continue;
      found->removed = {p, o};
      found->replacement = Mod((*o.term.inner - q) * c + x, c * o.term.divisor) * k;
      return true;
    }
  }
  return false;
}

// Returns the divisors 1 < g < c of c that the coefficients of x suggest for the split x = g·y + z, largest first.
std::vector<int64_t> SplitCandidates(const Index& x, int64_t c) {
  std::vector<int64_t> found;
  for (const Part& p : x.parts()) {
    const size_t known = found.size();
    const int64_t g = std::gcd(p.coefficient, c);
    for (size_t i = 0; i < known; ++i) found.push_back(std::gcd(found[i], g));
    found.push_back(g);
    std::sort(found.begin(), found.end(), std::greater<>());
    found.erase(std::unique(found.begin(), found.end()), found.end());
  }
  std::erase_if(found, [&](int64_t g) { return g <= 1 || g >= c; });
  return found;
}

// Splits x = g·y + z; returns whether 0 <= z < g for all values of the axes.
bool Split(const Index& x, int64_t g, Index* y, Index* z) {
  Parts quotient, rest;
  for (const Part& p : x.parts()) {
    if (p.coefficient % g == 0) {
      quotient.push_back({p.term, p.coefficient / g});
    } else {
      rest.push_back(p);
    }
  }
  *z = Index::FromParts(x.constant(), std::move(rest));
  int64_t block;
  if (!InOneBlock(*z, g, &block)) return false;
  *z = *z - block * g;
  *y = Index::FromParts(block, std::move(quotient));
  return true;
}

// Returns x//c for an x whose coefficients are below c.
Index DivideReduced(const Index& x, int64_t c) {
  int64_t block;
  if (InOneBlock(x, c, &block)) return block;
  Index y, z;
  for (int64_t g : SplitCandidates(x, c)) {
    if (Split(x, g, &y, &z)) return FloorDiv(y, c / g);
  }
  for (const Part& p : x.parts()) {
    if (p.coefficient != 1) continue;
    const Index rest = x - Index::FromParts(0, {p});
    if (p.term.kind == TermKind::kMod && p.term.divisor % c == 0 &&
        InOneBlock(Mod(*p.term.inner, c) + rest, c, &block)) {
      return Mod(FloorDiv(*p.term.inner, c), p.term.divisor / c) + block;
    }
    if (p.term.kind == TermKind::kFloorDiv && p.term.divisor < kInfinity / c) {
      return FloorDiv(*p.term.inner + rest * p.term.divisor, p.term.divisor * c);
    }
  }
  return TermOf(TermKind::kFloorDiv, x, c);
}

}  // namespace

constinit const std::vector<Index::Part> Index::kNoParts;

Index::Index(const Axis& axis) {
  Term term;
  term.axis = axis;
  parts_ = std::make_shared<const std::vector<Part>>(1, Part{std::move(term), 1});
}

Index Index::Load(TensorId tensor, std::vector<Index> indices, Interval range) {
  Term term;
  term.kind = TermKind::kLoad;
  term.tensor = tensor;
  term.indices = std::move(indices);
  term.load_range = {Saturate(range.lo), Saturate(range.hi)};
  return FromParts(0, {{std::move(term), 1}});
}

Index Index::FromParts(int64_t constant, std::vector<Part> parts) {
  const auto less = [](const Part& a, const Part& b) { return CompareTerms(a.term, b.term) < 0; };
  if (!std::is_sorted(parts.begin(), parts.end(), less)) std::sort(parts.begin(), parts.end(), less);
  size_t kept = 0;
  for (size_t i = 0; i < parts.size();) {
    size_t j = i + 1;
    for (; j < parts.size() && CompareTerms(parts[i].term, parts[j].term) == 0; ++j) {
      parts[i].coefficient += parts[j].coefficient;
    }
    if (parts[i].coefficient != 0) {
      if (kept != i) parts[kept] = std::move(parts[i]);
      ++kept;
    }
    i = j;
  }
  parts.resize(kept);
  Identity identity;
  const bool shorter = parts.size() > 1 && Recombine(parts, &identity);
  if (shorter) {
    std::erase_if(parts, [&](const Part& p) {
      return std::any_of(identity.removed.begin(), identity.removed.end(),
                         [&](const Part& r) { return CompareTerms(r.term, p.term) == 0; });
    });
  }
  Index sum = constant - identity.removed_constant;
  if (!parts.empty()) sum.parts_ = std::make_shared<const std::vector<Part>>(std::move(parts));
  return shorter ? sum + identity.replacement : sum;
}

Index Index::operator+(const Index& other) const {
  if (other.IsConstant() || IsConstant()) {
    Index sum = IsConstant() ? other : *this;
    sum.c0_ = c0_ + other.c0_;
    return sum;
  }
  std::vector<Part> parts;
  parts.reserve(parts_->size() + other.parts_->size());
  std::merge(parts_->begin(), parts_->end(), other.parts_->begin(), other.parts_->end(), std::back_inserter(parts),
             [](const Part& a, const Part& b) { return CompareTerms(a.term, b.term) < 0; });
  return FromParts(c0_ + other.c0_, std::move(parts));
}

Index Index::operator-(const Index& other) const { return *this + other * -1; }

Index Index::operator*(int64_t factor) const {
  if (factor == 0) return 0;
  if (factor == 1) return *this;
  Index product = c0_ * factor;
  if (IsConstant()) return product;
  std::vector<Part> parts = *parts_;
  for (Part& p : parts) p.coefficient *= factor;
  product.parts_ = std::make_shared<const std::vector<Part>>(std::move(parts));
  return product;
}

Interval Index::Range() const {
  __int128 lo = c0_, hi = c0_;
  for (const Part& p : parts()) {
    const Interval r = RangeOfTerm(p.term);
    lo += static_cast<__int128>(p.coefficient) * (p.coefficient > 0 ? r.lo : r.hi);
    hi += static_cast<__int128>(p.coefficient) * (p.coefficient > 0 ? r.hi : r.lo);
  }
  return {Saturate(lo), Saturate(hi)};
}

int Index::Compare(const Index& other) const {
  const std::vector<Part>&own = parts(), &others = other.parts();
  if (int o = Order(own.size(), others.size())) return o;
  for (size_t i = 0; parts_ != other.parts_ && i < own.size(); ++i) {
    if (int o = CompareTerms(own[i].term, others[i].term)) return o;
    if (int o = Order(own[i].coefficient, others[i].coefficient)) return o;
  }
  return Order(c0_, other.c0_);
}

bool Index::operator==(const Index& other) const { return Compare(other) == 0; }

bool Index::UsesAxis(int axis_id) const {
  return std::any_of(parts().begin(), parts().end(), [&](const Part& p) { return TermUses(p.term, axis_id); });
}

bool Index::HasLoad() const {
  return std::any_of(parts().begin(), parts().end(), [](const Part& p) {
    return p.term.kind == TermKind::kLoad || (p.term.inner && p.term.inner->HasLoad());
  });
}

bool Index::AffineIn(int axis_id, int64_t* coefficient) const {
  *coefficient = 0;
  for (const Part& p : parts()) {
    if (!TermUses(p.term, axis_id)) continue;
    if (p.term.kind != TermKind::kAxis) return false;
    *coefficient += p.coefficient;
  }
  return true;
}

Index FloorDiv(const Index& x, int64_t divisor) {
  FUSION_CHECK(divisor > 0, "an index is divided by a positive constant");
  if (divisor == 1) return x;
  int64_t block;
  if (InOneBlock(x, divisor, &block)) return block;
  // Coefficients are split towards zero: the remainder keeps its sign, so that ranges stay exact.
  std::vector<Index::Part> whole, rest;
  for (const Index::Part& p : x.parts()) {
    if (int64_t q = p.coefficient / divisor) whole.push_back({p.term, q});
    if (int64_t r = p.coefficient % divisor) rest.push_back({p.term, r});
  }
  Index quotient = Index::FromParts(FloorQuotient(x.c0_, divisor), std::move(whole));
  if (rest.empty()) return quotient;
  return quotient + DivideReduced(Index::FromParts(FloorRemainder(x.c0_, divisor), std::move(rest)), divisor);
}

Index Mod(const Index& x, int64_t divisor) {
  FUSION_CHECK(divisor > 0, "the divisor of an index modulo is positive");
  if (divisor == 1) return 0;
  int64_t block;
  if (InOneBlock(x, divisor, &block)) return x - block * divisor;
  std::vector<Index::Part> rest;
  Index unwrapped;  // r·(y % d) ≡ r·y when the divisor divides r·d
  for (const Index::Part& p : x.parts()) {
    const int64_t r = p.coefficient % divisor;
    if (r == 0) continue;
    if (p.term.kind == TermKind::kMod && r * p.term.divisor % divisor == 0) {
      unwrapped = unwrapped + *p.term.inner * r;
    } else {
      rest.push_back({p.term, r});
    }
  }
  const Index reduced = Index::FromParts(FloorRemainder(x.c0_, divisor), std::move(rest));
  if (!unwrapped.IsConstant() || unwrapped.constant() != 0) return Mod(reduced + unwrapped, divisor);
  if (InOneBlock(reduced, divisor, &block)) return reduced - block * divisor;
  Index y, z;
  for (int64_t g : SplitCandidates(reduced, divisor)) {
    if (Split(reduced, g, &y, &z)) return Mod(y, divisor / g) * g + z;
  }
  return TermOf(TermKind::kMod, reduced, divisor);
}

}  // namespace fusion::te
