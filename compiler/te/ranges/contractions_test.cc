#include "compiler/te/ranges/contractions.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::optional<TensorRanges> Between(double lo, double hi) { return TensorRanges{ranges::Range(lo, hi)}; }
const std::optional<TensorRanges> kAny;

// Returns whether each addend of the program that can be its first input could be brought back by the other operand.
std::vector<bool> BroughtBack(const std::string& text, const std::vector<std::optional<TensorRanges>>& inputs) {
  const Program program = Parse(text).value();
  const ExpressionRanges ranges(program, inputs);
  std::vector<bool> result;
  for (const Addend& addend : AddendsOf(program)) {
    if (addend.input == program.inputs[0]) result.push_back(CanBringBack(ranges, addend));
  }
  return result;
}
using Answers = std::vector<bool>;

constexpr char kSum[] = R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = add(%0[i0], %1[i0])
  return %2
})";

TEST(Contractions, ASumOfUnknownOperandsBringsAProductBack) {
  EXPECT_EQ(BroughtBack(kSum, {kAny, kAny}), Answers{true});
}

TEST(Contractions, WhatIsSmallOrOfTheSameSignDoesNot) {
  EXPECT_EQ(BroughtBack(kSum, {kAny, Between(-1e30, 1)}), Answers{false});
  EXPECT_EQ(BroughtBack(kSum, {kAny, Between(-1e31, 1)}), Answers{true});
  EXPECT_EQ(BroughtBack(kSum, {Between(0, kInfinity), Between(0, kInfinity)}), Answers{false});
  EXPECT_EQ(BroughtBack(kSum, {Between(-kInfinity, 0), Between(-kInfinity, 0)}), Answers{false});
  EXPECT_EQ(BroughtBack(kSum, {Between(0, kInfinity), Between(-kInfinity, 0)}), Answers{true});
}

TEST(Contractions, ADifferenceTurnsTheSign) {
  constexpr char kDifference[] = R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = sub(%1[i0], neg(%0[i0]))
  %3[i1<8]: f32 = sub(%0[i1], %1[i1])
  return %2, %3
})";
  const auto positive = Between(0, kInfinity), negative = Between(-kInfinity, 0);
  EXPECT_EQ(BroughtBack(kDifference, {positive, positive}), (Answers{false, true}));
  EXPECT_EQ(BroughtBack(kDifference, {positive, negative}), (Answers{true, false}));
}

TEST(Contractions, AReductionAddsItsTerms) {
  constexpr char kReduction[] = R"(te p(%0: f32[8]) {
  %1[]: f32 = sum.f32(i0<8) %0[i0]
  return %1
})";
  EXPECT_EQ(BroughtBack(kReduction, {kAny}), Answers{true});
  EXPECT_EQ(BroughtBack(kReduction, {Between(0, kInfinity)}), Answers{false});
}

TEST(Contractions, AnOperandIsFollowedThroughChoicesAndCopies) {
  EXPECT_EQ(BroughtBack(R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = if i0 < 4 then %0[i0] else 1.0
  %3[i1<8]: f32 = add(%1[i1], select(lt(%1[i1], 0.0), neg(%2[i1]), 0.0))
  return %3
})",
                        {kAny, kAny}),
            Answers{true});
}

TEST(Contractions, FactorsRoundedValuesAndHalvesAreNoAddends) {
  EXPECT_EQ(BroughtBack(R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = add(mul(%0[i0], %1[i0]), cast.f32(%0[i0]))
  %3[i1<8]: f32 = add(max(%0[i1], 1.0), %1[i1])
  return %2, %3
})",
                        {kAny, kAny}),
            Answers{});
  EXPECT_EQ(BroughtBack(R"(te p(%0: f16[8], %1: f16[8]) {
  %2[i0<8]: f16 = add(%0[i0], %1[i0])
  return %2
})",
                        {kAny, kAny}),
            Answers{});
}

// Returns whether each last operation of the program's output can overflow.
std::vector<bool> Overflows(const std::string& text, const std::vector<std::optional<TensorRanges>>& inputs) {
  const Program program = Parse(text).value();
  const ExpressionRanges ranges(program, inputs);
  std::vector<bool> result;
  for (const auto& product : LastOperationOf(program, program.outputs[0]).products) {
    result.push_back(CanOverflow(ranges, product));
  }
  return result;
}

constexpr char kProduct[] = R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = mul(%0[i0], %1[i0])
  return %2
})";

TEST(Contractions, AProductOverflowsUnlessItsRangeOrAFactorIsSmall) {
  EXPECT_EQ(Overflows(kProduct, {kAny, kAny}), Answers{true});
  EXPECT_EQ(Overflows(kProduct, {kAny, Between(-1, 1)}), Answers{false});
  EXPECT_EQ(Overflows(kProduct, {kAny, Between(-1, 1.5)}), Answers{true});
  EXPECT_EQ(Overflows(kProduct, {Between(-1e20, 1e20), Between(0, 1e18)}), Answers{false});
  EXPECT_EQ(Overflows(kProduct, {Between(-1e20, 1e20), Between(0, 1e19)}), Answers{true});
}

TEST(Contractions, ADivisionByAConstantIsAProduct) {
  const auto divided = [](const std::string& by) {
    return Overflows("te p(%0: f32[8]) {\n  %1[i0<8]: f32 = div(%0[i0], " + by + ")\n  return %1\n}", {kAny});
  };
  EXPECT_EQ(divided("0.25"), Answers{true});
  EXPECT_EQ(divided("-4.0"), Answers{false});
  EXPECT_EQ(divided("add(%0[i0], 1.0)"), Answers{});
}

TEST(Contractions, ASumOfOneTermAndAProductOfManyAreProducts) {
  const auto reduced = [](const std::string& kind, int terms) {
    return Overflows("te p(%0: f32[8], %1: f32[8]) {\n  %2[]: f32 = " + kind + ".f32(i0<" + std::to_string(terms) +
                         ") mul(%0[i0], %1[i0])\n  return %2\n}",
                     {kAny, kAny});
  };
  EXPECT_EQ(reduced("sum", 1), Answers{true});
  EXPECT_EQ(reduced("sum", 2), Answers{});
  EXPECT_EQ(reduced("prod", 2), Answers{true});
  EXPECT_EQ(reduced("max", 2), Answers{});
}

TEST(Contractions, WhatATensorPassesOnIsAnInput) {
  const Program program = Parse(R"(te p(%0: f32[8], %1: f32[8]) {
  %2[i0<8]: f32 = mul(%0[i0], %1[i0])
  %3[i1<8]: f32 = if i1 < 4 then %2[i1] else abs(%1[i1])
  return %3
})")
                              .value();
  const LastOperation last = LastOperationOf(program, program.outputs[0]);
  EXPECT_EQ(last.products.size(), 1u);
  EXPECT_EQ(last.inputs, std::set<TensorId>{program.inputs[1]});
}

}  // namespace
}  // namespace fusion::te
