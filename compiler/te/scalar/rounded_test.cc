#include "compiler/te/scalar/rounded.h"

#include <gtest/gtest.h>

namespace fusion::te {
namespace {

const Scalar kX = Load(0, DType::kF32, {Index(0)}), kY = Load(1, DType::kF32, {Index(0)});

TEST(Rounded, IsACastThatCastDoesNotMake) {
  const Scalar rounded = Rounded(kX);
  EXPECT_EQ(rounded->kind, ScalarKind::kCast);
  EXPECT_EQ(rounded->dtype, DType::kF32);
  EXPECT_EQ(rounded->args[0], kX);
  EXPECT_EQ(Cast(DType::kF32, kX), kX);
}

TEST(Rounded, OnceIsEnough) {
  const Scalar rounded = Rounded(kX);
  EXPECT_EQ(Rounded(rounded), rounded);
}

TEST(WithOperands, KeepsARounding) {
  const Scalar moved = WithOperands(Rounded(kX), {kY});
  EXPECT_TRUE(StructurallyEqual(moved, Rounded(kY)));
  const Scalar narrowed = WithOperands(Cast(DType::kF16, kX), {kY});
  EXPECT_TRUE(StructurallyEqual(narrowed, Cast(DType::kF16, kY)));
}

TEST(WithOperands, OfTheSameOperandsIsTheSameObject) {
  for (const Scalar& s : {kX + kY, Rounded(kX), If({{Axis{0, 4}, Cmp::kLt, 2}}, kX, kY)}) {
    EXPECT_EQ(WithOperands(s, s->args), s);
  }
}

TEST(WithOperands, RebuildsCallsAndConditions) {
  EXPECT_TRUE(StructurallyEqual(WithOperands(kX + kY, {kY, kX}), kY + kX));
  const Pred pred = {{Axis{0, 4}, Cmp::kLt, 2}};
  EXPECT_TRUE(StructurallyEqual(WithOperands(If(pred, kX, kY), {kY, kX}), If(pred, kY, kX)));
  EXPECT_TRUE(IsImm(WithOperands(kX + kY, {Imm(DType::kF32, 1), Imm(DType::kF32, 2)}), 3)) << "it folds";
}

}  // namespace
}  // namespace fusion::te
