#include "compiler/te/scalar/axis_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace fusion::te {
namespace {

TEST(VisitCuts, FindsThoseOfOneComparison) {
  const Axis i{0, 100}, j{1, 50};
  const Scalar zero = Imm(DType::kF32, 0), one = Imm(DType::kF32, 1);
  const Scalar inner = If({{Index(j), Cmp::kLt, Index(7)}}, zero, one);
  const Scalar border = If({{Index(i), Cmp::kGe, Index(1)}, {Index(i), Cmp::kLt, Index(9)}}, inner, zero);
  const Scalar outer = If({{Index(i), Cmp::kLt, Index(20)}}, border, one);
  std::vector<std::pair<int, int64_t>> cuts;
  VisitCuts(outer, [&](const AxisCut& cut) { cuts.emplace_back(cut.axis.id, cut.at); });
  EXPECT_EQ(cuts.size(), 2u) << "a border compares twice";
  EXPECT_NE(std::find(cuts.begin(), cuts.end(), std::pair<int, int64_t>(0, 20)), cuts.end());
  EXPECT_NE(std::find(cuts.begin(), cuts.end(), std::pair<int, int64_t>(1, 7)), cuts.end());
}

}  // namespace
}  // namespace fusion::te
