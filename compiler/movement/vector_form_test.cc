#include "compiler/movement/vector_form.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

using te::Cmp;
using te::Index;

const te::Axis kRow{0, 8}, kLane{1, 64};

te::Scalar At(const Index& address) { return te::Load(0, DType::kF32, {address}); }

te::Scalar Inside(te::Pred pred, const Index& address, te::Scalar otherwise = te::Imm(DType::kF32, 0.0)) {
  return te::If(std::move(pred), At(address), std::move(otherwise));
}

TEST(SteppedLoad, ABorderAlongTheLanesGivesBounds) {
  const Index x = Index(kLane) - Index(1);
  const SteppedLoad load = SteppedLoadOf(*Inside({{Index(kRow), Cmp::kGe, Index(2)},
                                                  {x, Cmp::kGe, Index(0)},
                                                  {x, Cmp::kLt, Index(62)}},
                                                 Index(kRow) * 62 + x),
                                         kLane.id);
  ASSERT_NE(load.load, nullptr);
  EXPECT_EQ(load.stride, 1);
  EXPECT_EQ(load.still.size(), 1u);
  ASSERT_EQ(load.from.size(), 1u);
  ASSERT_EQ(load.to.size(), 1u);
  EXPECT_TRUE(load.from[0] == Index(1) - Index(kLane));
  EXPECT_TRUE(load.to[0] == Index(63) - Index(kLane));
}

TEST(SteppedLoad, EverySecondElementWithABorderOrWithout) {
  const Index x = Index(kLane) * 2 - Index(1);
  const SteppedLoad border = SteppedLoadOf(*Inside({{x, Cmp::kGe, Index(0)}}, x), kLane.id);
  ASSERT_NE(border.load, nullptr);
  EXPECT_EQ(border.stride, 2);
  const SteppedLoad plain = SteppedLoadOf(*At(Index(kLane) * 2 + Index(kRow)), kLane.id);
  ASSERT_NE(plain.load, nullptr);
  EXPECT_EQ(plain.outside, nullptr);
}

TEST(SteppedLoad, TwoRunsInTurns) {
  const Index x = Index(kLane) + Index(1);
  const SteppedLoad phases = SteppedLoadOf(*At(te::FloorDiv(x, 2) + te::Mod(x, 2) * 33), kLane.id);
  ASSERT_NE(phases.load, nullptr);
  EXPECT_TRUE(phases.zipped);
  EXPECT_EQ(SteppedLoadOf(*At(te::FloorDiv(x, 3) + te::Mod(x, 3) * 33), kLane.id).load, nullptr);
  EXPECT_EQ(SteppedLoadOf(*At(te::FloorDiv(x, 2) * 2 + te::Mod(x, 2) * 33), kLane.id).load, nullptr);
  EXPECT_EQ(SteppedLoadOf(*At(te::FloorDiv(x, 2)), kLane.id).zipped, true);  // each element twice
}

TEST(SteppedLoad, OthersAreNone) {
  const Index x(kLane);
  const auto is_stepped = [](const te::Scalar& s) { return SteppedLoadOf(*s, kLane.id).load != nullptr; };
  EXPECT_FALSE(is_stepped(At(x)));
  EXPECT_TRUE(is_stepped(At(x * 8)));
  EXPECT_FALSE(is_stepped(At(x * 9)));
  // Through a border every element or every second one is read.
  EXPECT_FALSE(is_stepped(Inside({{x * 3 - Index(1), Cmp::kGe, Index(0)}}, x * 3 - Index(1))));
  EXPECT_FALSE(is_stepped(At(Index(100) - x * 2)));
  EXPECT_FALSE(is_stepped(Inside({{Index(kRow), Cmp::kGe, Index(2)}}, x)));        // whole vectors or none
  EXPECT_FALSE(is_stepped(Inside({{x * 2, Cmp::kGe, Index(5)}}, x)));              // the condition has another step
  EXPECT_FALSE(is_stepped(Inside({{te::Mod(x, 4), Cmp::kGe, Index(1)}}, x)));      // not a bound
  EXPECT_FALSE(is_stepped(Inside({{x, Cmp::kGe, Index(5)}}, x, At(Index(kRow)))));  // not a constant
  EXPECT_FALSE(is_stepped(te::Load(0, DType::kI8, {x * 2})));
}

TEST(AlongAxis, SteppedLoadsAreCountedApart) {
  const te::Scalar sum = te::Call(te::Op::kAdd, {At(Index(kLane)), At(Index(kLane) * 2)});
  const AlongAxis value = AlongAxisOf(sum, kLane, 16);
  EXPECT_TRUE(value.vectorizable);
  EXPECT_EQ(value.contiguous_loads, 1);
  EXPECT_EQ(value.stepped_loads, 1);
  EXPECT_EQ(value.strided_loads, 1);
  EXPECT_EQ(value.gathered_loads, 0);
}

}  // namespace
}  // namespace fusion::movement
