#include "compiler/te/scalar/value_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace fusion::te {
namespace {

using ranges::Operands;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

// Numbers at which operations change what they do.
const std::vector<double>& Corners() {
  static const auto* const kCorners = new std::vector<double>{-kInfinity, -1e300, -3,  -1, -0.5, -1e-300, -0.0,
                                                              0.0,        1e-300, 0.5, 1,  3,    1e300,   kInfinity};
  return *kCorners;
}

// Does the range admit the value?
testing::AssertionResult Admits(const ValueRange& range, double value) {
  if (std::isnan(value)) {
    return range.number ? testing::AssertionFailure() << "NaN, which the range excludes" : testing::AssertionSuccess();
  }
  if (value < range.lo || value > range.hi) {
    return testing::AssertionFailure() << value << " outside [" << range.lo << ", " << range.hi << "]";
  }
  if (value == 0 && std::signbit(value) && !range.negative_zero) return testing::AssertionFailure() << "-0";
  if (value != 0 && std::fabs(value) < range.least) {
    return testing::AssertionFailure() << value << " is nearer to 0 than " << range.least;
  }
  return testing::AssertionSuccess();
}

// All ranges between two corners, and each corner alone, with the corners that lie in them.
struct Sampled {
  ValueRange range;
  std::vector<double> members;
};
std::vector<Sampled> Ranges() {
  std::vector<Sampled> all;
  for (const double lo : Corners()) {
    all.push_back({ValueRange::Exactly(lo, false), {lo}});
    for (const double hi : Corners()) {
      if (lo >= hi) continue;
      Sampled sampled{ranges::Range(lo, hi, true), {}};
      for (const double x : Corners()) {
        if (x >= lo && x <= hi) sampled.members.push_back(x);
      }
      all.push_back(sampled);
    }
  }
  return all;
}

struct Operation {
  const char* name;
  ValueRange (*range)(const Operands&);
  double (*value)(double, double);
};

TEST(ValueRange, EveryResultLiesInTheRangeOfItsOperation) {
  const Operation operations[] = {
      {"sum", [](const Operands& x) { return ranges::Sum(x.a, x.b, 1); }, [](double a, double b) { return a + b; }},
      {"difference", [](const Operands& x) { return ranges::Sum(x.a, x.b, -1); },
       [](double a, double b) { return a - b; }},
      {"product", [](const Operands& x) { return ranges::Product(x.a, x.b); },
       [](double a, double b) { return a * b; }},
      {"quotient", ranges::OfQuotient, [](double a, double b) { return a / b; }},
      // Kernels take either of two zeros.
      {"minimum", ranges::OfMin, [](double a, double b) { return b < a ? b : a; }},
      {"minimum of the other operand", ranges::OfMin, [](double a, double b) { return a < b ? a : b; }},
      {"maximum", ranges::OfMax, [](double a, double b) { return b > a ? b : a; }},
      {"maximum of the other operand", ranges::OfMax, [](double a, double b) { return a > b ? a : b; }},
      {"hull", [](const Operands& x) { return ranges::Hull(x.a, x.b); }, [](double a, double) { return a; }},
  };
  const std::vector<Sampled> all = Ranges();
  for (const Operation& operation : operations) {
    int failures = 0;
    for (const Sampled& a : all) {
      for (const Sampled& b : all) {
        const ValueRange range = operation.range({a.range, b.range});
        for (const double x : a.members) {
          for (const double y : b.members) {
            const double value = operation.value(x, y);
            if (failures < 5 && !Admits(range, value)) {
              ++failures;
              EXPECT_TRUE(Admits(range, value))
                  << operation.name << " of " << x << " in [" << a.range.lo << ", " << a.range.hi << "] and " << y
                  << " in [" << b.range.lo << ", " << b.range.hi << "]";
            }
          }
        }
      }
    }
  }
}

TEST(ValueRange, EveryResultOfOneOperandLiesInItsRange) {
  const Operation operations[] = {
      {"negation", ranges::OfNegation, [](double a, double) { return -a; }},
      {"magnitude", ranges::OfMagnitude, [](double a, double) { return std::fabs(a); }},
      {"sign", ranges::OfSign, [](double a, double) { return a > 0   ? 1.0
                                                             : a < 0 ? -1.0
                                                                     : a; }},
      {"root", ranges::OfRoot, [](double a, double) { return std::sqrt(a); }},
      {"inverse root", ranges::OfInverseRoot, [](double a, double) { return 1 / std::sqrt(a); }},
      {"exponential", ranges::OfExponential, [](double a, double) { return std::exp(a); }},
      {"logarithm", ranges::OfLogarithm, [](double a, double) { return std::log(a); }},
      {"sine", ranges::OfWave, [](double a, double) { return std::sin(a); }},
      {"floor", [](const Operands& x) { return ranges::OfRounding(x, std::floor); },
       [](double a, double) { return std::floor(a); }},
      {"square", [](const Operands& x) { return ranges::Product(x.a, x.a, true); },
       [](double a, double) { return a * a; }},
  };
  for (const Operation& operation : operations) {
    for (const Sampled& a : Ranges()) {
      const ValueRange range = operation.range({a.range, a.range});
      for (const double x : a.members) {
        EXPECT_TRUE(Admits(range, operation.value(x, 0)))
            << operation.name << " of " << x << " in [" << a.range.lo << ", " << a.range.hi << "]";
      }
    }
  }
}

TEST(ValueRange, NothingIsKnownOfNan) {
  const ValueRange nan = ValueRange::Exactly(kNan, false);
  EXPECT_FALSE(nan.number);
  EXPECT_EQ(nan.lo, -kInfinity);
  EXPECT_FALSE(ranges::Range(kNan, 1, true).IsPoint());
}

TEST(ValueRange, IntegersKeepTheirSymbols) {
  ValueRange x = ranges::Range(0, 9, true);
  x.linear = true;
  x.terms = {{5, 1}};
  const ValueRange twice = ranges::Product(x, ValueRange::Exactly(2, true));
  ASSERT_TRUE(twice.linear);
  EXPECT_EQ(twice.terms.at(5), 2);
  const ValueRange none = ranges::Sum(twice, twice, -1);
  ASSERT_TRUE(none.linear);
  EXPECT_TRUE(none.terms.empty());
  EXPECT_TRUE(none.IsPoint()) << "2x - 2x is 0, whatever x is";
  EXPECT_EQ(ranges::Equal(twice, twice, true), true);
  EXPECT_EQ(ranges::Equal(x, twice, true), std::nullopt);
  // 2x / 4 rounds, so that it is no longer linear; 2x / 2 is x.
  EXPECT_FALSE(ranges::OfQuotient({twice, ValueRange::Exactly(4, true), true}).linear);
  EXPECT_EQ(ranges::OfQuotient({twice, ValueRange::Exactly(2, true), true}).terms.at(5), 1);
}

TEST(ValueRange, ComparisonsAreSettledOnlyWhereEveryPairAgrees) {
  const ValueRange low = ranges::Range(0, 1, true), high = ranges::Range(1, 2, true),
                   above = ranges::Range(1.5, 2, true);
  EXPECT_EQ(ranges::Less(low, above, false), true);
  EXPECT_EQ(ranges::Less(high, low, false), false);  // 1 < 1 is false
  EXPECT_EQ(ranges::Less(low, high, false), std::nullopt);
  EXPECT_EQ(ranges::Less(low, ranges::Range(1.5, 2, false), false), std::nullopt) << "a NaN is less than nothing";
  EXPECT_EQ(ranges::Not(std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace fusion::te
