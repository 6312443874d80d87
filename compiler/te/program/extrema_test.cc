#include "compiler/te/program/extrema.h"

#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/transform.h"
#include "compiler/te/scalar/rounded.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Idx = Builder::Idx;

class ExtremaTest : public ::testing::Test {
 protected:
  ExtremaTest()
      : x_(program_.AddTensor("x", DType::kF32, {4}, Role::kInput)),
        y_(program_.AddTensor("y", DType::kF32, {4}, Role::kInput)) {}

  // value[i] − max or min of value, or of other values.
  void Subtract(const std::function<Scalar(const Idx&)>& value, ReductionKind kind, TensorId of = -1) {
    const TensorId v = b_.Map("v", DType::kF32, {4}, value);
    const TensorId extremum = b_.Reduce("m", kind, DType::kF32, DType::kF32, {}, {4},
                                        [&](const Idx&, const Idx& k) { return b_.At(of < 0 ? v : of, k); });
    const TensorId result =
        b_.Map("r", DType::kF32, {4}, [&](const Idx& i) { return b_.At(v, i) - b_.At(extremum, {}); });
    program_.MarkOutput(result);
    ASSERT_TRUE(Inline(&program_, v).ok());
    RoundBesideExtrema(&program_);
    ASSERT_TRUE(Verify(program_).ok()) << Verify(program_);
  }
  Scalar Product(const Idx& i) { return b_.At(x_, i) * b_.At(y_, i); }

  Program program_;
  Builder b_{&program_};
  TensorId x_, y_;
};

TEST_F(ExtremaTest, AProductMeetsItsOwnExtremumRounded) {
  for (const ReductionKind kind : {ReductionKind::kMax, ReductionKind::kMin, ReductionKind::kSum}) {
    program_ = Program();
    x_ = program_.AddTensor("x", DType::kF32, {4}, Role::kInput);
    y_ = program_.AddTensor("y", DType::kF32, {4}, Role::kInput);
    Subtract([&](const Idx& i) { return Product(i); }, kind);
    const std::string text = Print(program_);
    const bool extremum = kind != ReductionKind::kSum;
    EXPECT_EQ(text.find("cast.f32(mul(") != std::string::npos, extremum) << text;
    const auto parsed = Parse(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(Print(*parsed), text) << "the rounding survives the text";
  }
}

TEST_F(ExtremaTest, WhatIsNoProductStaysAsItIs) {
  Subtract([&](const Idx& i) { return Product(i) + b_.At(y_, i); }, ReductionKind::kMax);
  EXPECT_THAT(Print(program_), Not(HasSubstr("cast.")));
}

TEST_F(ExtremaTest, AnExtremumOfOtherValuesStaysAsItIs) {
  const TensorId z = program_.AddTensor("z", DType::kF32, {4}, Role::kInput);
  Subtract([&](const Idx& i) { return Product(i); }, ReductionKind::kMax, z);
  EXPECT_THAT(Print(program_), Not(HasSubstr("cast.")));
}

TEST_F(ExtremaTest, BranchesAndFunctionsCount) {
  Subtract(
      [&](const Idx& i) {
        return If({{i[0], Cmp::kLt, Index(2)}}, Call(Op::kNeg, {Product(i)}), Call(Op::kExp, {b_.At(x_, i)}));
      },
      ReductionKind::kMax);
  EXPECT_THAT(Print(program_), HasSubstr("cast.f32("));
}

TEST_F(ExtremaTest, TheLargestDiffersByNothing) {
  Subtract([&](const Idx& i) { return Product(i); }, ReductionKind::kMax);
  Tensor x(DType::kF32, {4}), y(DType::kF32, {4});
  for (int i = 0; i < 4; ++i) {
    x.SetDouble(i, 1.1e19 + 1e18 * i);
    y.SetDouble(i, 1.3e19);
  }
  const auto result = Interpret(program_, {x, y});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].GetDouble(3), 0);
  EXPECT_LT((*result)[0].GetDouble(2), -1e37);
}

TEST_F(ExtremaTest, SubstitutionKeepsTheRounding) {
  const Axis axis = program_.NewAxis(4);
  const Scalar rounded = Rounded(Load(x_, DType::kF32, {Index(axis)}) * Load(y_, DType::kF32, {Index(axis)}));
  const Index three(3);
  const Scalar at = Substitute(rounded, [&](const Axis&) { return &three; });
  ASSERT_NE(at, rounded);
  EXPECT_EQ(at->kind, ScalarKind::kCast);
  EXPECT_EQ(at->dtype, at->args[0]->dtype);
}

}  // namespace
}  // namespace fusion::te
