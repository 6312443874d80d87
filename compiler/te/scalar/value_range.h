// Known: what is known at compile time about a value that is computed at run time, and what operations make of it.
#ifndef FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_
#define FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace fusion::te {

// The value range of an element: closed, and infinities lie in it where its ends are infinite. An integer may also be
// known to be constant + Σ coefficient·symbol (then `linear` is set); the caller defines the symbols.
struct Known {
  double lo = -std::numeric_limits<double>::infinity(), hi = std::numeric_limits<double>::infinity();
  bool number = false;        // the value is never NaN
  bool negative_zero = true;  // the value may be -0
  double least = 0;           // no magnitude lies between 0 and this; infinite if the value is 0
  bool linear = false;
  int64_t constant = 0;
  std::map<int, int64_t> terms;

  static Known Exactly(double value, bool integer);
  bool IsPoint() const { return lo == hi; }
};

namespace ranges {

inline constexpr double kExact = 9007199254740992.0;  // integers up to here are exact in double

// Returns what the two ends alone imply.
Known Range(double lo, double hi, bool number = false);
Known Hull(const Known& a, const Known& b);
bool HoldsZero(const Known& known);
double Largest(const Known& known);  // the largest magnitude

Known Sum(const Known& a, const Known& b, int64_t sign);
Known Product(const Known& a, const Known& b, bool square = false);

// The operands of an operation.
struct Operands {
  const Known& a;
  const Known& b;        // knows nothing where there is one operand
  bool integer = false;  // the operands are no floats
  bool equal = false;    // floats: both are the same value
};

// What each operation makes of its operands, before the result is rounded or wrapped to its type.
Known OfQuotient(const Operands& x);
Known OfRemainder(const Operands& x);
Known OfMin(const Operands& x);
Known OfMax(const Operands& x);
Known OfPower(const Operands& x);
Known OfNegation(const Operands& x);
Known OfMagnitude(const Operands& x);
Known OfSign(const Operands& x);
Known OfRoot(const Operands& x);
Known OfInverseRoot(const Operands& x);
Known OfExponential(const Operands& x);
Known OfLogarithm(const Operands& x);
Known OfWave(const Operands& x);  // sine and cosine
// A monotone function: one that rounds to an integer, and one that kernels approximate.
Known OfRounding(const Operands& x, double (*f)(double));
Known OfApproximation(const Operands& x, double (*f)(double));

std::optional<bool> Less(const Known& a, const Known& b, bool integer);
std::optional<bool> Equal(const Known& a, const Known& b, bool integer);
std::optional<bool> Not(std::optional<bool> x);
Known Truth(std::optional<bool> truth);
Known OfAnd(const Operands& x);
Known OfOr(const Operands& x);
Known OfNot(const Operands& x);

}  // namespace ranges
}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_VALUE_RANGE_H_
