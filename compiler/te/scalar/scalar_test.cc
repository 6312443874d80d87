#include "compiler/te/scalar/scalar.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace fusion::te {
namespace {

constexpr DType kF = DType::kF32;
const Axis kI{0, 8}, kJ{1, 8};

Scalar F(double v) { return Imm(kF, v); }
Scalar X(const Index& i = kI) { return Load(0, kF, {i}); }

TEST(ScalarTest, FoldsExactConstants) {
  EXPECT_TRUE(IsImm(F(1.5) + F(2.25), 3.75));
  EXPECT_TRUE(IsImm(F(1) / F(4), 0.25));
  EXPECT_EQ((F(1) / F(3))->kind, ScalarKind::kOp);      // rounds in f32
  EXPECT_EQ((F(0.1) + F(0.1))->kind, ScalarKind::kOp);  // f32 does not hold 0.1 exactly
  EXPECT_EQ(Call(Op::kExp, {F(0)})->kind, ScalarKind::kOp);
  EXPECT_TRUE(IsImm(Imm(DType::kF64, 0.1) + Imm(DType::kF64, 0.2), 0.1 + 0.2));
  EXPECT_TRUE(IsImm(Call(Op::kLt, {F(1), F(2)}), 1));
}

TEST(ScalarTest, IntegersWrapToTheirType) {
  EXPECT_TRUE(IsImm(Imm(DType::kI32, -2.9), -2));
  EXPECT_TRUE(IsImm(ImmInt(DType::kU8, 300), 44));
  EXPECT_TRUE(IsImm(ImmInt(DType::kI8, 127) + ImmInt(DType::kI8, 1), -128));
  EXPECT_TRUE(IsImm(ImmInt(DType::kI32, 7) / ImmInt(DType::kI32, 0), 0));
  EXPECT_TRUE(IsImm(ImmInt(DType::kI32, -7) / ImmInt(DType::kI32, 2), -3));
  const int64_t min = std::numeric_limits<int64_t>::min();
  EXPECT_EQ((ImmInt(DType::kI64, min) / ImmInt(DType::kI64, -1))->ivalue, min);
  EXPECT_EQ((ImmInt(DType::kU64, -1) / ImmInt(DType::kU64, 2))->ivalue, std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(IsImm(ImmInt(DType::kBool, 5), 1));
}

TEST(ScalarTest, NeutralElementsKeepTheSignOfZero) {
  const Scalar x = X();
  EXPECT_EQ(x * F(1), x);
  EXPECT_EQ(x / F(1), x);
  EXPECT_EQ(x - F(0), x);
  EXPECT_EQ(x + F(-0.0), x);
  EXPECT_NE(x + F(0), x);                        // -0 + 0 is +0
  EXPECT_EQ((x * F(0))->kind, ScalarKind::kOp);  // NaN, infinity
  const Scalar n = Load(1, DType::kI64, {kI});
  EXPECT_EQ(n + ImmInt(DType::kI64, 0), n);
  EXPECT_TRUE(IsImm(n * ImmInt(DType::kI64, 0), 0));
}

TEST(ScalarTest, Casts) {
  const Scalar x = X();
  EXPECT_EQ(Cast(kF, x), x);
  EXPECT_TRUE(IsImm(Cast(DType::kI32, F(-2.5)), -2));
  EXPECT_TRUE(IsImm(Cast(DType::kBool, F(0.5)), 1));
  EXPECT_EQ(Cast(DType::kI8, F(1000))->kind, ScalarKind::kCast);  // out of range: left to the machine
  EXPECT_EQ(Cast(DType::kF16, F(2049))->kind, ScalarKind::kCast);
  EXPECT_TRUE(IsImm(Cast(kF, ImmInt(DType::kI64, 7)), 7));
}

TEST(ScalarTest, PredicatesSettledByRangesVanish) {
  const Scalar a = X(), b = F(0);
  EXPECT_EQ(If({{kI, Cmp::kLt, 8}}, a, b), a);
  EXPECT_EQ(If({{kI, Cmp::kLt, 4}, {kI, Cmp::kGe, 8}}, a, b), b);
  const Scalar kept = If({{kI, Cmp::kGe, 0}, {kI, Cmp::kLt, 4}, {kI, Cmp::kLt, 4}}, a, b);
  ASSERT_EQ(kept->kind, ScalarKind::kIf);
  EXPECT_EQ(kept->pred.size(), 1u);
  EXPECT_EQ(Decide({Index(kI) + 8, Cmp::kNe, kI}), true);
  EXPECT_EQ(Decide({kI, Cmp::kEq, kJ}), std::nullopt);
  // Substitution decides the condition.
  const Index three = 3;
  const Scalar first = Substitute(kept, [&](const Axis& axis) { return axis.id == 0 ? &three : nullptr; });
  EXPECT_TRUE(StructurallyEqual(first, X(3)));
}

TEST(ScalarTest, WhatLiesInsideABlockDoesNotDecide) {
  const Axis block{7, 8}, lane{8, 16};
  const Index channel = Index(block) * 16 + Index(lane);
  bool never = false;
  const Pred below = Simplify({{channel, Cmp::kLt, Index(64)}}, &never);
  ASSERT_EQ(below.size(), 1u);
  EXPECT_FALSE(below[0].lhs.UsesAxis(lane.id));
  EXPECT_TRUE(Simplify({{channel, Cmp::kLt, Index(60)}}, &never)[0].lhs.UsesAxis(lane.id)) << "60 cuts a block";
  EXPECT_FALSE(
      Simplify({{channel + Index(4) - Index(lane) + Index(Axis{9, 12}), Cmp::kGe, Index(32)}}, &never)[0].lhs.UsesAxis(
          9))
      << "4 to 15 of 16";
  EXPECT_FALSE(never);
  const std::optional<AxisCut> cut = CutOf(below);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->axis.id, block.id);
  EXPECT_EQ(cut->at, 4);
  for (int64_t bound = -3; bound < 12; ++bound) {
    const std::optional<AxisCut> at = CutOf({{Index(block) * 3, Cmp::kLt, Index(bound)}});
    ASSERT_TRUE(at.has_value());
    for (int64_t x = -3; x < 8; ++x) EXPECT_EQ(3 * x < bound, x < at->at) << x << " " << bound;
  }
  EXPECT_FALSE(CutOf({{channel, Cmp::kLt, Index(60)}}).has_value());
  EXPECT_FALSE(CutOf({{Index(block), Cmp::kGe, Index(3)}}).has_value());
}

TEST(ScalarTest, RewritesShareNodes) {
  // 2^64 paths, 64 nodes.
  Scalar s = X();
  for (int i = 0; i < 64; ++i) s = s * s;
  const Index j = kJ;
  const auto to_j = [&](const Axis& a) { return a.id == 0 ? &j : nullptr; };
  const Scalar t = Substitute(s, to_j);
  EXPECT_EQ(OpCost(t), 64);
  int nodes = 0;
  Visit(t, [&](const ScalarNode&) { ++nodes; });
  EXPECT_EQ(nodes, 65);
  Scalar u = X(kJ);
  for (int i = 0; i < 64; ++i) u = u * u;
  EXPECT_TRUE(StructurallyEqual(t, u));
  EXPECT_FALSE(StructurallyEqual(t, s));
  EXPECT_EQ(Substitute(t, to_j), t);  // nothing to replace: the same object
}

TEST(ScalarTest, MapLoadsAndTensors) {
  const Scalar s = Max(X(), Load(1, kF, {kI, kJ}, F(0)));
  const Scalar moved = MapTensors(s, [](TensorId t) { return t + 10; });
  EXPECT_EQ(moved->args[1]->tensor, 11);
  EXPECT_TRUE(moved->args[1]->pad != nullptr);
  const Scalar inlined =
      MapLoads(s, [](const Scalar& load) { return load->tensor == 0 ? Call(Op::kNeg, {load}) : nullptr; });
  EXPECT_TRUE(StructurallyEqual(inlined, Max(Call(Op::kNeg, {X()}), Load(1, kF, {kI, kJ}, F(0)))));
}

TEST(ScalarTest, EqualityTellsBitsApart) {
  EXPECT_FALSE(StructurallyEqual(F(0.0), F(-0.0)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(StructurallyEqual(F(nan), F(nan)));
  EXPECT_FALSE(StructurallyEqual(F(1), Imm(DType::kF64, 1)));
  EXPECT_FALSE(StructurallyEqual(X(), Load(0, kF, {kI}, F(0))));
}

TEST(ScalarTest, TableMatchesTheEnumeration) {
  EXPECT_STREQ(GetOpInfo(Op::kErf).name, "erf");
  EXPECT_STREQ(GetOpInfo(Op::kIsNan).name, "isnan");
  EXPECT_STREQ(GetOpInfo(Op::kNot).name, "not");
  EXPECT_STREQ(GetOpInfo(Op::kShr).name, "shr");
  EXPECT_EQ(GetOpInfo(Op::kSelect).arity, 3);
}

}  // namespace
}  // namespace fusion::te
