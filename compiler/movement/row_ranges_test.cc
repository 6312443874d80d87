#include "compiler/movement/row_ranges.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

const Axis kRow{4, 100};

Scalar Of(int buffer, const Index& at) { return te::Load(buffer, DType::kF32, {at}); }

// `if axis < at then a else b`
Scalar Below(int64_t at, const Scalar& a, const Scalar& b) {
  return te::If({{Index(kRow), te::Cmp::kLt, Index(at)}}, a, b);
}

TEST(RowRanges, BeginWhereAConditionChanges) {
  const Scalar three = Below(32, Of(0, Index(kRow)), Below(40, Of(1, Index(kRow) - 32), Of(2, Index(kRow) - 40)));
  const std::vector<RowRange> ranges = RowRangesOf(three + Of(3, Index(kRow)), kRow);
  ASSERT_EQ(ranges.size(), 3u);
  const int64_t extents[] = {32, 8, 60}, begins[] = {0, 32, 40};
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(ranges[r].axis.id, kRow.id);
    EXPECT_EQ(ranges[r].axis.extent, extents[r]);
    ASSERT_EQ(ranges[r].body->kind, te::ScalarKind::kOp) << "no condition is left";
    const Index at(ranges[r].axis);
    EXPECT_EQ(ranges[r].body->args[0]->tensor, r);
    EXPECT_TRUE(ranges[r].body->args[0]->indices[0] == at) << "each part from its own beginning";
    EXPECT_TRUE(ranges[r].body->args[1]->indices[0] == at + begins[r]);
  }
}

TEST(RowRanges, OneWithoutSuchConditions) {
  const Scalar plain = Of(0, Index(kRow));
  ASSERT_EQ(RowRangesOf(plain, kRow).size(), 1u);
  EXPECT_EQ(RowRangesOf(plain, kRow)[0].body, plain);
  const Axis other{5, 50};
  const Scalar of_another = te::If({{Index(other), te::Cmp::kLt, Index(7)}}, plain, te::Imm(DType::kF32, 0));
  EXPECT_EQ(RowRangesOf(of_another, kRow).size(), 1u);
  Scalar many = plain;
  for (int64_t at = 10; at < 90; at += 10) many = Below(at, Of(1, Index(kRow)), many);
  EXPECT_EQ(RowRangesOf(many, kRow).size(), 1u) << "each would be a text of its own";
}

}  // namespace
}  // namespace fusion::movement
