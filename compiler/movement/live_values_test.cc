#include "compiler/movement/live_values.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

te::Scalar Load(int buffer) { return te::Load(buffer, DType::kF32, {te::Index(0)}); }

TEST(ValuesAtOnce, AChainNeedsOneAndATreeItsDepth) {
  EXPECT_EQ(ValuesAtOnce({te::Call(te::Op::kExp, {te::Call(te::Op::kNeg, {Load(0)})})}), 1);
  const te::Scalar sum = Load(0) + Load(1), other = Load(2) + Load(3);
  EXPECT_EQ(ValuesAtOnce({sum}), 2);
  EXPECT_EQ(ValuesAtOnce({sum * other}), 3);
  // A shared value lives until its last use.
  EXPECT_EQ(ValuesAtOnce({sum * te::Call(te::Op::kExp, {sum})}), 2);
}

TEST(ValuesAtOnce, AccumulatorsCount) {
  Step step;
  step.body = {Load(0)};
  EXPECT_EQ(ValuesAtOnce(step), 1);
  step.reduction.emplace();
  EXPECT_EQ(ValuesAtOnce(step), 2);
  RegisterTile tile;
  tile.row_count = 3;
  tile.outer_count = 2;
  step.strategy = tile;
  EXPECT_EQ(AccumulatorsOf(step), 6);
  EXPECT_EQ(ValuesAtOnce(step), 7);
}

}  // namespace
}  // namespace fusion::movement
