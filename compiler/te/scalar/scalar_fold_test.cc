#include "compiler/te/scalar/scalar_fold.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/te/scalar/immediate.h"
#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(FoldCall, FoldsImmediatesOnly) {
  const Scalar two = Imm(DType::kF32, 2), three = Imm(DType::kF32, 3);
  const Scalar folded = FoldCall(Op::kMul, DType::kF32, {two, three});
  ASSERT_NE(folded, nullptr);
  EXPECT_TRUE(IsImm(folded, 6));
  ScalarNode load;
  load.kind = ScalarKind::kLoad;
  load.dtype = DType::kF32;
  EXPECT_EQ(FoldCall(Op::kMul, DType::kF32, {std::make_shared<const ScalarNode>(load), three}), nullptr);
}

TEST(FoldCall, LeavesToMachinesWhatTheyMayDoOtherwise) {
  const Scalar zero = Imm(DType::kF32, 0), minus_zero = Imm(DType::kF32, -0.0);
  EXPECT_EQ(FoldCall(Op::kMax, DType::kF32, {zero, minus_zero}), nullptr) << "the sign of the zero";
  EXPECT_EQ(FoldCall(Op::kExp, DType::kF32, {zero}), nullptr) << "a function of a library";
  EXPECT_EQ(FoldCall(Op::kDiv, DType::kF32, {zero, zero}), nullptr) << "NaN";
  EXPECT_EQ(FoldCall(Op::kDiv, DType::kF32, {Imm(DType::kF32, 1), Imm(DType::kF32, 3)}), nullptr) << "rounds";
}

TEST(FoldCast, KeepsWhatTheTypeHolds) {
  EXPECT_TRUE(IsImm(FoldCast(DType::kF16, *Imm(DType::kF32, 0.5)), 0.5));
  EXPECT_EQ(FoldCast(DType::kF16, *Imm(DType::kF32, 0.1)), nullptr);
  EXPECT_EQ(FoldCast(DType::kI8, *Imm(DType::kF32, 300)), nullptr) << "machines differ";
  EXPECT_TRUE(IsImm(FoldCast(DType::kI8, *Imm(DType::kF32, -2.75)), -2));
  EXPECT_EQ(FoldCast(DType::kF64, *ImmInt(DType::kI64, (int64_t{1} << 53) + 1)), nullptr);
}

TEST(ExactValue, IsThatOfTheTable) {
  EXPECT_EQ(ExactValue(Op::kSub, DType::kF32, 3, 5), -2);
  EXPECT_EQ(ExactValue(Op::kLt, DType::kF32, 3, 5), 1);
  EXPECT_EQ(ExactValue(Op::kLt, DType::kI64, 5, 3), 0);
  EXPECT_EQ(ExactValue(Op::kIsNan, DType::kF32, 5), 0);
  EXPECT_EQ(ExactValue(Op::kNot, DType::kBool, 0), 1);
  EXPECT_EQ(ExactValue(Op::kAnd, DType::kBool, 1, 1), 1);
  EXPECT_EQ(ExactValue(Op::kMax, DType::kI32, -7, 2), 2);
  EXPECT_EQ(ExactValue(Op::kMin, DType::kF32, -kInfinity, 2), -kInfinity);
}

TEST(ExactValue, OfIntegersWraps) {
  EXPECT_EQ(ExactValue(Op::kNeg, DType::kI8, -128), -128);
  EXPECT_EQ(ExactValue(Op::kAdd, DType::kU8, 255, 2), 1);
  EXPECT_EQ(ExactValue(Op::kNeg, DType::kI64, -std::ldexp(1.0, 63)), -std::ldexp(1.0, 63));
  EXPECT_EQ(ExactValue(Op::kSub, DType::kI64, -std::ldexp(1.0, 63), 1), std::ldexp(1.0, 63))
      << "stands for the greatest";
  EXPECT_EQ(ExactValue(Op::kSub, DType::kI64, -std::ldexp(1.0, 63), 2), std::nullopt) << "no double holds it";
  EXPECT_EQ(ExactValue(Op::kAdd, DType::kU8, 300, 1), std::nullopt) << "the type has no 300";
}

TEST(ExactValue, OfFloatsIsExactOrUnknown) {
  EXPECT_EQ(ExactValue(Op::kDiv, DType::kF32, 1, 3), std::nullopt);
  EXPECT_EQ(ExactValue(Op::kAdd, DType::kF32, 1, 0.1), std::nullopt) << "the type has no 0.1";
  EXPECT_EQ(ExactValue(Op::kAdd, DType::kF32, kInfinity, -kInfinity), std::nullopt) << "NaN";
  EXPECT_EQ(ExactValue(Op::kMul, DType::kF16, 300, 300), std::nullopt) << "overflows";
  EXPECT_EQ(ExactValue(Op::kAnd, DType::kF32, 1, 1), std::nullopt) << "not defined on floats";
}

TEST(ExactValue, OfLibrariesIsTrustedAtLimitsOnly) {
  EXPECT_EQ(ExactValue(Op::kExp, DType::kF32, -kInfinity), 0);
  EXPECT_EQ(ExactValue(Op::kExp, DType::kF32, 0), 1);
  EXPECT_EQ(ExactValue(Op::kLog, DType::kF32, 0), -kInfinity);
  EXPECT_EQ(ExactValue(Op::kPow, DType::kF32, 0, 2), 0);
  EXPECT_EQ(ExactValue(Op::kPow, DType::kF32, 3, 2), std::nullopt);
}

}  // namespace
}  // namespace fusion::te
