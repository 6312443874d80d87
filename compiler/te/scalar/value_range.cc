#include "compiler/te/scalar/value_range.h"

#include <algorithm>
#include <cmath>

namespace fusion::te {
namespace ranges {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool HoldsInfinity(const ValueRange& known) { return std::isinf(known.lo) || std::isinf(known.hi); }

// By the sign bit, which zeros have, too.
bool MayBeNegativeZero(const ValueRange& known) { return HoldsZero(known) && known.negative_zero; }
bool MayBeNegative(const ValueRange& known) { return known.lo < 0 || MayBeNegativeZero(known); }
bool MayBePositive(const ValueRange& known) { return known.hi >= 0; }

}  // namespace
}  // namespace ranges

ValueRange ValueRange::Exactly(double value, bool integer) {
  ValueRange known;
  if (std::isnan(value)) return known;
  known.lo = known.hi = value;
  known.number = true;
  known.negative_zero = value == 0 && std::signbit(value);
  known.least = value == 0 ? ranges::kInfinity : std::fabs(value);
  known.linear = integer && std::fabs(value) <= ranges::kExact;
  if (known.linear) known.constant = static_cast<int64_t>(value);
  return known;
}

namespace ranges {
ValueRange Range(double lo, double hi, bool number) {
  ValueRange known;
  known.number = number;
  if (std::isnan(lo) || std::isnan(hi)) return known;
  known.lo = lo;
  known.hi = hi;
  known.negative_zero = lo <= 0 && hi >= 0;
  known.least = lo > 0 ? lo : hi < 0 ? -hi : 0;
  return known;
}

bool HoldsZero(const ValueRange& known) { return known.lo <= 0 && known.hi >= 0; }
double Largest(const ValueRange& known) { return std::max(std::fabs(known.lo), std::fabs(known.hi)); }

ValueRange Hull(const ValueRange& a, const ValueRange& b) {
  if (a.linear && b.linear && a.constant == b.constant && a.terms == b.terms) return a;
  ValueRange hull = Range(std::min(a.lo, b.lo), std::max(a.hi, b.hi), a.number && b.number);
  hull.least = std::min(a.least, b.least);
  hull.negative_zero = a.negative_zero || b.negative_zero;
  return hull;
}

ValueRange Sum(const ValueRange& a, const ValueRange& b, int64_t sign) {
  ValueRange sum = sign > 0 ? Range(a.lo + b.lo, a.hi + b.hi) : Range(a.lo - b.hi, a.hi - b.lo);
  // A sum of numbers is NaN only for infinities of opposite signs.
  const bool up = std::isinf(a.hi) && std::isinf(sign > 0 ? b.lo : b.hi);
  const bool down = std::isinf(a.lo) && std::isinf(sign > 0 ? b.hi : b.lo);
  sum.number = a.number && b.number && !up && !down;
  sum.linear = a.linear && b.linear;
  if (!sum.linear) return sum;
  sum.terms = a.terms;
  sum.constant = a.constant + sign * b.constant;
  for (const auto& [symbol, coefficient] : b.terms) {
    if ((sum.terms[symbol] += sign * coefficient) == 0) sum.terms.erase(symbol);
  }
  if (sum.terms.empty()) sum.lo = sum.hi = static_cast<double>(sum.constant);
  return sum;
}

ValueRange Product(const ValueRange& a, const ValueRange& b, bool square) {
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (double x : {a.lo, a.hi}) {
    for (double y : {b.lo, b.hi}) {
      const double p = x == 0 || y == 0 ? 0 : x * y;
      lo = std::min(lo, p);
      hi = std::max(hi, p);
    }
  }
  if (square) lo = a.least < kInfinity && !HoldsZero(a) ? a.least * a.least : 0;
  const bool number =
      a.number && b.number && (square || !((HoldsZero(a) && HoldsInfinity(b)) || (HoldsZero(b) && HoldsInfinity(a))));
  ValueRange product = Range(lo, hi, number);
  product.least = std::isinf(a.least) || std::isinf(b.least) ? kInfinity : std::max(product.least, a.least * b.least);
  // A zero is -0 where the signs of the factors differ, also where it is what a product of tiny numbers rounds to.
  const bool differ = (MayBeNegative(a) && MayBePositive(b)) || (MayBeNegative(b) && MayBePositive(a));
  product.negative_zero = product.negative_zero && !square && differ;
  const ValueRange* factor = a.linear && a.terms.empty() ? &a : b.linear && b.terms.empty() ? &b : nullptr;
  const ValueRange& other = factor == &a ? b : a;
  if (factor == nullptr || !other.linear || std::fabs(product.lo) > kExact || std::fabs(product.hi) > kExact) {
    return product;
  }
  product.linear = true;
  product.constant = other.constant * factor->constant;
  for (const auto& [symbol, coefficient] : other.terms) {
    if (factor->constant != 0) product.terms[symbol] = coefficient * factor->constant;
  }
  return product;
}

namespace {

ValueRange Negated(const ValueRange& a) {
  ValueRange negated = a;
  negated.lo = -a.hi;
  negated.hi = -a.lo;
  negated.negative_zero = true;
  negated.linear = false;
  negated.terms.clear();
  return negated;
}

// Integer quotients round towards zero. A range results only for divisors of one sign.
ValueRange Quotient(const ValueRange& a, const ValueRange& b, bool integer) {
  if (!integer && b.hi < 0) return Quotient(Negated(a), Negated(b), integer);
  if (!integer && b.lo == 0 && !b.negative_zero && a.lo >= 0) return Range(0, kInfinity);  // 0 / 0 is NaN
  if (!(b.lo > 0)) return {};
  double lo = std::numeric_limits<double>::infinity(), hi = -lo;
  for (double x : {a.lo, a.hi}) {
    for (double y : {b.lo, b.hi}) {
      const double q = std::isinf(y) ? 0 : integer ? std::trunc(x / y) : x / y;
      lo = std::min(lo, q);
      hi = std::max(hi, q);
    }
  }
  ValueRange quotient = Range(lo, hi, a.number && b.number && !(HoldsInfinity(a) && HoldsInfinity(b)));
  if (!integer) quotient.least = std::max(quotient.least, std::isinf(a.least) ? kInfinity : a.least / b.hi);
  if (!integer || !a.linear || !b.linear || !b.terms.empty()) return quotient;
  bool exact = a.constant % b.constant == 0;
  for (const auto& [symbol, coefficient] : a.terms) exact = exact && coefficient % b.constant == 0;
  if (!exact) return quotient;
  quotient.linear = true;
  quotient.constant = a.constant / b.constant;
  for (const auto& [symbol, coefficient] : a.terms) quotient.terms[symbol] = coefficient / b.constant;
  return quotient;
}

// Returns the range of a monotone function that kernels approximate: a little wider.
ValueRange Nearly(const ValueRange& x, double (*f)(double)) {
  constexpr double kSlack = 1e-6;
  const double lo = f(x.lo), hi = f(x.hi);
  return Range(lo - kSlack * std::fabs(lo), hi + kSlack * std::fabs(hi), x.number);
}
ValueRange Nearly(const ValueRange& x) {
  return Nearly(x, [](double value) { return value; });
}

ValueRange Extreme(const Operands& x, bool least) {
  const ValueRange &a = x.a, &b = x.b;
  ValueRange either =
      Range(least ? std::min(a.lo, b.lo) : std::max(a.lo, b.lo), least ? std::min(a.hi, b.hi) : std::max(a.hi, b.hi));
  either.least = std::max(either.least, std::min(a.least, b.least));
  if (least ? a.hi <= b.lo : a.lo >= b.hi) either = a;
  if (least ? b.hi <= a.lo : b.lo >= a.hi) either = b;
  either.number = a.number && b.number;  // a NaN operand is the result
  // Either of two zeros may be the result.
  either.negative_zero = HoldsZero(either) && (MayBeNegativeZero(a) || MayBeNegativeZero(b));
  return either;
}

}  // namespace

ValueRange OfQuotient(const Operands& x) { return Quotient(x.a, x.b, x.integer); }

ValueRange OfRemainder(const Operands& x) {
  const ValueRange &a = x.a, &b = x.b;
  if (!x.integer || !(a.lo >= 0)) return {};
  if (a.hi < b.lo) return a;
  if (a.IsPoint() && b.IsPoint() && b.lo > 0) return ValueRange::Exactly(std::fmod(a.lo, b.lo), true);
  return b.lo > 0 ? Range(0, std::min(a.hi, b.hi - 1)) : ValueRange();
}

ValueRange OfMin(const Operands& x) { return Extreme(x, true); }
ValueRange OfMax(const Operands& x) { return Extreme(x, false); }

ValueRange OfPower(const Operands& x) {
  if (x.integer) return {};
  if (x.b.IsPoint() && x.b.lo == 2) return Product(x.a, x.a, true);
  return x.a.lo >= 0 ? Range(0, kInfinity) : ValueRange();
}

ValueRange OfNegation(const Operands& x) {
  return x.integer ? Sum(ValueRange::Exactly(0, true), x.a, -1) : Negated(x.a);
}

ValueRange OfMagnitude(const Operands& x) {
  const ValueRange& a = x.a;
  if (x.integer && a.lo >= 0) return a;
  ValueRange magnitude = Range(a.lo >= 0 ? a.lo : a.hi <= 0 ? -a.hi : 0, Largest(a), a.number);
  magnitude.least = std::max(magnitude.least, a.least);
  magnitude.negative_zero = false;
  return magnitude;
}

ValueRange OfSign(const Operands& x) {
  const ValueRange& a = x.a;
  if (!x.integer) return Range(a.lo > 0 ? 1 : -1, a.hi < 0 ? -1 : 1, a.number);
  return a.lo > 0 ? ValueRange::Exactly(1, true) : a.hi < 0 ? ValueRange::Exactly(-1, true) : Range(-1, 1);
}

ValueRange OfRoot(const Operands& x) {
  const ValueRange& a = x.a;
  return Range(a.lo > 0 ? std::sqrt(a.lo) : 0, a.hi > 0 ? std::sqrt(a.hi) : 0, a.number && a.lo >= 0);
}

ValueRange OfInverseRoot(const Operands& x) {
  const ValueRange& a = x.a;
  return a.lo > 0 ? Nearly(Range(1 / std::sqrt(a.hi), 1 / std::sqrt(a.lo), a.number)) : ValueRange();
}

ValueRange OfExponential(const Operands& x) {
  ValueRange power = Nearly(x.a, std::exp);
  power.negative_zero = false;
  return power;
}

ValueRange OfLogarithm(const Operands& x) {
  const ValueRange& a = x.a;
  return Nearly(Range(std::max(a.lo, 0.0), std::max(a.hi, 0.0), a.number && a.lo >= 0), std::log);
}

ValueRange OfWave(const Operands& x) { return Nearly(Range(-1, 1, x.a.number && !HoldsInfinity(x.a))); }

ValueRange OfRounding(const Operands& x, double (*f)(double)) {
  return x.integer ? x.a : Range(f(x.a.lo), f(x.a.hi), x.a.number);
}

ValueRange OfApproximation(const Operands& x, double (*f)(double)) { return Nearly(x.a, f); }

std::optional<bool> Less(const ValueRange& a, const ValueRange& b, bool integer) {
  if (!integer && !(a.number && b.number)) return std::nullopt;
  if (a.lo >= b.hi) return false;
  if (a.hi < b.lo) return true;
  return std::nullopt;
}

std::optional<bool> Equal(const ValueRange& a, const ValueRange& b, bool integer) {
  if (integer && a.linear && b.linear && a.constant == b.constant && a.terms == b.terms) return true;
  if (a.hi < b.lo || b.hi < a.lo) return false;
  if (a.IsPoint() && b.IsPoint()) return a.lo == b.lo;
  return std::nullopt;
}

std::optional<bool> Not(std::optional<bool> x) { return x ? std::optional<bool>(!*x) : x; }

ValueRange Truth(std::optional<bool> truth) {
  return truth.has_value() ? ValueRange::Exactly(*truth ? 1 : 0, true) : Range(0, 1, true);
}

ValueRange OfAnd(const Operands& x) {
  const ValueRange &a = x.a, &b = x.b;
  if ((a.IsPoint() && a.lo == 0) || (b.IsPoint() && b.lo == 0)) return Truth(false);
  return a.IsPoint() && b.IsPoint() ? Truth(true) : Truth(std::nullopt);
}

ValueRange OfOr(const Operands& x) {
  const ValueRange &a = x.a, &b = x.b;
  if ((a.IsPoint() && a.lo != 0) || (b.IsPoint() && b.lo != 0)) return Truth(true);
  return a.IsPoint() && b.IsPoint() ? Truth(false) : Truth(std::nullopt);
}

ValueRange OfNot(const Operands& x) { return x.a.IsPoint() ? Truth(x.a.lo == 0) : Truth(std::nullopt); }

}  // namespace ranges
}  // namespace fusion::te
