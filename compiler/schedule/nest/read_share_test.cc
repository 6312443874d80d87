#include "compiler/schedule/nest/read_share.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace fusion {
namespace {

const te::Axis kRow{0, 10}, kColumn{1, 4};

te::Te MapOf(te::Scalar body) {
  te::Te te;
  te.axes = {kRow, kColumn};
  te.body = {std::move(body)};
  return te;
}

te::Scalar LoadAt(te::TensorId tensor, const te::Index& row) {
  return te::Load(tensor, DType::kF32, {row, te::Index(kColumn)});
}

te::Scalar IfRowBelow(int64_t limit, const te::Scalar& yes, const te::Scalar& no) {
  return te::If({{te::Index(kRow), te::Cmp::kLt, te::Index(limit)}}, yes, no);
}

te::Scalar Sum(const te::Scalar& a, const te::Scalar& b) { return te::Call(te::Op::kAdd, {a, b}); }

TEST(ReadShare, EqualIndicesAreReadOnce) {
  const te::Scalar here = LoadAt(7, te::Index(kRow)), there = LoadAt(7, te::Index(9) - te::Index(kRow));
  EXPECT_EQ(ReadsPerPoint(MapOf(Sum(here, LoadAt(7, te::Index(kRow)))), 7), 1);
  EXPECT_EQ(ReadsPerPoint(MapOf(Sum(here, there)), 7), 2);
  EXPECT_EQ(ReadsPerPoint(MapOf(Sum(here, LoadAt(8, te::Index(9) - te::Index(kRow)))), 7), 1);  // of another tensor
}

TEST(ReadShare, AnIfReadsTheLargerOfItsBranches) {
  const te::Scalar one = LoadAt(7, te::Index(kRow)), two = Sum(one, LoadAt(7, te::Index(9) - te::Index(kRow)));
  EXPECT_EQ(ReadsPerPoint(MapOf(IfRowBelow(3, one, two)), 7), 2);
  EXPECT_EQ(ReadsPerPoint(MapOf(IfRowBelow(3, two, one)), 7), 2);
}

TEST(ReadShare, ABranchOverARangeHasTheShareOfItsRange) {
  const te::Scalar x = LoadAt(7, te::Index(kRow)), other = LoadAt(8, te::Index(kRow));
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(IfRowBelow(3, x, other)), 7), 0.3);
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(IfRowBelow(3, other, x)), 7), 0.7);
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(IfRowBelow(3, x, IfRowBelow(5, x, other))), 7), 0.5);
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(Sum(IfRowBelow(3, x, other), x)), 7), 1);  // it is read outside the branch, too
}

TEST(ReadShare, ARangePastTheEndHasNoPoints) {
  const te::Scalar x = LoadAt(7, te::Index(kRow)), other = LoadAt(8, te::Index(kRow));
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(IfRowBelow(100, other, x)), 7), 0);
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(IfRowBelow(3, other, IfRowBelow(2, x, other))), 7), 0);
}

// A tower of shared branches has 2^40 paths: the walk gives up and counts every point.
TEST(ReadShare, AnExpressionTooLargeToWalkIsReadEverywhere) {
  te::Scalar tower = IfRowBelow(3, LoadAt(7, te::Index(kRow)), LoadAt(8, te::Index(kRow)));
  for (int i = 0; i < 40; ++i) tower = Sum(tower, tower);
  EXPECT_DOUBLE_EQ(ReadShare(MapOf(tower), 7), 1);
}

}  // namespace
}  // namespace fusion
