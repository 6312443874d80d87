// ValueRange: what is known at compile time about a value that is computed at run time, and what operations make of it.
#ifndef FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_
#define FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace fusion::te {

// The value range of an element: closed, and infinities lie in it where its ends are infinite. An integer may also be
// known to be constant + Σ coefficient·symbol (then `linear` is set); the caller defines the symbols.
struct ValueRange {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  bool number = false;        // the value is never NaN
  bool negative_zero = true;  // the value may be -0
  double least = 0;           // no magnitude lies between 0 and this; infinite if the value is 0
  bool linear = false;
  int64_t constant = 0;
  std::map<int, int64_t> terms;

  static ValueRange Exactly(double value, bool integer);
  bool IsPoint() const { return lo == hi; }
};

namespace ranges {

inline constexpr double kExact = 9007199254740992.0;  // integers up to here are exact in double

// Returns what the two ends alone imply.
ValueRange Range(double lo, double hi, bool number = false);
ValueRange Hull(const ValueRange& a, const ValueRange& b);
bool HoldsZero(const ValueRange& known);
double Largest(const ValueRange& known);  // the largest magnitude

ValueRange Sum(const ValueRange& a, const ValueRange& b, int64_t sign);
ValueRange Product(const ValueRange& a, const ValueRange& b, bool square = false);

// The operands of an operation.
struct Operands {
  const ValueRange& a;
  const ValueRange& b;   // knows nothing where there is one operand
  bool integer = false;  // the operands are no floats
  bool equal = false;    // floats: both are the same value
};

// The range of each operation's result, before the result is rounded or wrapped to its type.
ValueRange OfQuotient(const Operands& x);
ValueRange OfRemainder(const Operands& x);
ValueRange OfMin(const Operands& x);
ValueRange OfMax(const Operands& x);
ValueRange OfPower(const Operands& x);
ValueRange OfNegation(const Operands& x);
ValueRange OfMagnitude(const Operands& x);
ValueRange OfSign(const Operands& x);
ValueRange OfRoot(const Operands& x);
ValueRange OfInverseRoot(const Operands& x);
ValueRange OfExponential(const Operands& x);
ValueRange OfLogarithm(const Operands& x);
ValueRange OfWave(const Operands& x);  // sine and cosine
// A monotone function: one that rounds to an integer, and one that kernels approximate.
ValueRange OfRounding(const Operands& x, double (*f)(double));
ValueRange OfApproximation(const Operands& x, double (*f)(double));

std::optional<bool> Less(const ValueRange& a, const ValueRange& b, bool integer);
std::optional<bool> Equal(const ValueRange& a, const ValueRange& b, bool integer);
std::optional<bool> Not(std::optional<bool> x);
ValueRange Truth(std::optional<bool> truth);
ValueRange OfAnd(const Operands& x);
ValueRange OfOr(const Operands& x);
ValueRange OfNot(const Operands& x);

}  // namespace ranges
}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_
