#include "compiler/rewrite/functions.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace fusion::rewrite {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Term Number(double number) {
  Term term;
  term.kind = Term::Kind::kNumber;
  term.number = number;
  return term;
}

Term List(const Ints& numbers) {
  Term term;
  term.kind = Term::Kind::kList;
  for (const int64_t number : numbers) term.args.push_back(Number(static_cast<double>(number)));
  return term;
}

Term Variable(int slot) {
  Term term;
  term.kind = Term::Kind::kVariable;
  term.text = "X";
  term.slot = slot;
  return term;
}

Term CallOf(const std::string& name, std::vector<Term> args) {
  Term term;
  term.kind = Term::Kind::kCall;
  term.text = name;
  term.args = std::move(args);
  return term;
}

// One variable of [2, 3, 4], of which this range is proven.
struct OneVariable {
  explicit OneVariable(const te::ValueRange& range, DType dtype = DType::kF32) {
    value.type = {dtype, {2, 3, 4}};
    scope.values = {&value, nullptr};
    scope.known = {false, false};
    scope.range = [range](int) { return range; };
  }
  ecg::Value value;
  Scope scope;
};

Ints ListOf(const Term& term) {
  const OneVariable any(te::ValueRange{});
  const absl::StatusOr<FunctionValue> value = Evaluate(term, any.scope);
  return value.ok() && std::holds_alternative<Ints>(*value) ? std::get<Ints>(*value) : Ints{-99};
}

bool DoesNotApply(const Term& term) {
  const OneVariable any(te::ValueRange{});
  return absl::IsFailedPrecondition(Evaluate(term, any.scope).status());
}

TEST(AxisFunctions, PermutationsComposeAndLoseAxes) {
  EXPECT_EQ(ListOf(CallOf("compose", {List({2, 0, 1}), List({1, 2, 0})})), (Ints{0, 1, 2}));
  EXPECT_TRUE(DoesNotApply(CallOf("compose", {List({1, 0}), List({0, 1, 2})})));
  EXPECT_TRUE(DoesNotApply(CallOf("compose", {List({1, 0}), List({-1, 0})})));
  // Result axes 0 and 2 of (2, 0, 3, 1) go; what is left, (0, 1), is numbered anew.
  EXPECT_EQ(ListOf(CallOf("without", {List({2, 0, 3, 1}), List({0, 2})})), (Ints{0, 1}));
  EXPECT_EQ(ListOf(CallOf("without", {List({2, 0, 1}), List({})})), (Ints{2, 0, 1}));
}

TEST(AxisFunctions, ListsRefuseWhatTheyDoNotHold) {
  EXPECT_TRUE(DoesNotApply(CallOf("at", {List({5, 6}), Number(2)})));
  EXPECT_TRUE(DoesNotApply(CallOf("at", {List({5, 6}), Number(-1)})));
  EXPECT_TRUE(DoesNotApply(CallOf("sums", {List({1, 2}), List({1})})));
  EXPECT_EQ(ListOf(CallOf("products", {List({3, -2}), List({4, 5})})), (Ints{12, -10}));
}

TEST(AxisFunctions, SumsAndProductsThatOverflowDoNotApply) {
  constexpr int64_t kLarge = int64_t{1} << 62;
  EXPECT_TRUE(DoesNotApply(CallOf("sums", {List({kLarge}), List({kLarge})})));
  EXPECT_TRUE(DoesNotApply(CallOf("products", {List({kLarge}), List({4})})));
}

TEST(RangeFunctions, NanAndInfinityAreNotProvenAway) {
  const auto holds = [](const std::string& name, const te::ValueRange& range, DType dtype = DType::kF32) {
    const OneVariable one(range, dtype);
    return std::get<double>(Evaluate(CallOf(name, {Variable(0)}), one.scope).value()) != 0;
  };
  const te::ValueRange may_be_nan = te::ranges::Range(1, 2, false), number = te::ranges::Range(1, 2, true);
  for (const char* name : {"positive", "finite", "number", "modest", "moderate", "bounded", "light", "normal"}) {
    EXPECT_TRUE(holds(name, number)) << name;
    EXPECT_FALSE(holds(name, may_be_nan)) << name;
  }
  EXPECT_FALSE(holds("finite", te::ranges::Range(1, kInfinity, true)));
  EXPECT_FALSE(holds("positive", te::ranges::Range(0, 2, true)));
  EXPECT_TRUE(holds("nonnegative", te::ranges::Range(0, 2, true)));
  EXPECT_FALSE(holds("nonzero", te::ranges::Range(-1, 1, true)));
  // Integers wrap and round nothing; only their signs matter.
  EXPECT_TRUE(holds("modest", te::ranges::Range(-1e300, 1e300, false), DType::kI64));
}

TEST(RangeFunctions, MagnitudesHaveTwoEnds) {
  const auto modest = [](double lo, double hi) {
    const OneVariable one(te::ranges::Range(lo, hi, true));
    return std::get<double>(Evaluate(CallOf("modest", {Variable(0)}), one.scope).value()) != 0;
  };
  EXPECT_TRUE(modest(0x1p-16, 0x1p16));
  EXPECT_FALSE(modest(0x1p-17, 1));  // too near to 0
  EXPECT_FALSE(modest(1, 0x1.8p16));
  EXPECT_FALSE(modest(0, 1)) << "anything between 0 and 1 may be subnormal";
  EXPECT_TRUE(IsTame(te::ranges::Range(0, 1, true)));
  EXPECT_FALSE(IsTame(te::ranges::Range(0, kInfinity, true)));
}

TEST(WindowFunctions, PadsNeedSpatialAxes) {
  EXPECT_EQ(ListOf(CallOf("no_pads", {Variable(0)})), (Ints{0, 0}));
  OneVariable matrix(te::ValueRange{});
  matrix.value.type.shape = {2, 3};
  EXPECT_TRUE(absl::IsFailedPrecondition(Evaluate(CallOf("no_pads", {Variable(0)}), matrix.scope).status()));
  OneVariable no_filters(te::ValueRange{});
  no_filters.value.type.shape = {0, 3};
  EXPECT_TRUE(absl::IsFailedPrecondition(Evaluate(CallOf("taps", {Variable(0)}), no_filters.scope).status()));
}

TEST(Functions, AnAbsentVariableDoesNotApply) {
  for (const char* name : {"shape", "rank", "bytes", "elements", "value", "no_pads", "taps"}) {
    EXPECT_TRUE(DoesNotApply(CallOf(name, {Variable(1)}))) << name;
  }
  EXPECT_EQ(FindFunction("no_such_function"), nullptr);
}

TEST(Functions, IsFilledWith) {
  const auto filled = [](DType dtype, double fill, double number) {
    ecg::Value value;
    value.type = {dtype, {3}};
    value.constant = Tensor::From<double>(dtype, {3}, {fill, fill, fill});
    return IsFilledWith(value, number);
  };
  EXPECT_TRUE(filled(DType::kF32, 0.044715, 0.044715)) << "rounded to the type";
  EXPECT_TRUE(filled(DType::kI32, -1, -1));
  EXPECT_FALSE(filled(DType::kI32, 0, 0.5));
  EXPECT_FALSE(filled(DType::kU8, 255, -1)) << "Pow(A, 255) is no reciprocal";
  EXPECT_FALSE(filled(DType::kF32, -0.0, 0));
}

}  // namespace
}  // namespace fusion::rewrite
