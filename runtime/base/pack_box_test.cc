#include "runtime/base/pack_box.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "runtime/base/tensor.h"

namespace fusion {
namespace {

TEST(PackBoxTest, MovesThePartToTheFront) {
  Tensor whole = Tensor::From<int64_t>(DType::kI16, {2, 3, 4}, {0,  1,  2,  3,  10, 11, 12, 13, 20, 21, 22, 23,
                                                                50, 51, 52, 53, 60, 61, 62, 63, 70, 71, 72, 73});
  PackBox(whole.mutable_data(), 2, {2, 3, 4}, {2, 2, 3});
  const std::vector<int64_t> expected = {0, 1, 2, 10, 11, 12, 50, 51, 52, 60, 61, 62};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(whole.GetInt(static_cast<int64_t>(i)), expected[i]) << i;
  Tensor rows = Tensor::From<int64_t>(DType::kI64, {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  PackBox(rows.mutable_data(), 8, {2, 4}, {1, 4});
  EXPECT_EQ(rows.GetInt(3), 3);
  PackBox(rows.mutable_data(), 8, {2, 4}, {0, 2});
  EXPECT_EQ(rows.GetInt(4), 4);
}

TEST(SpreadBoxTest, IsTheInverseAndFillsZeros) {
  for (const Shape& part : std::vector<Shape>{{2, 2, 3}, {1, 3, 4}, {2, 3, 2}, {2, 1, 4}, {2, 3, 4}, {1, 1, 1}}) {
    const Shape extents = {2, 3, 4};
    Tensor small(DType::kI16, part), whole(DType::kI16, extents);
    for (int64_t i = 0; i < small.num_elements(); ++i) small.SetDouble(i, static_cast<double>(i + 1));
    for (int64_t i = 0; i < 24; ++i) whole.SetDouble(i, -1);
    SpreadBox(small.data(), whole.mutable_data(), 2, extents, part);
    for (int64_t i = 0; i < 24; ++i) {
      const int64_t at[3] = {i / 12, i / 4 % 3, i % 4};
      const bool inside = at[0] < part[0] && at[1] < part[1] && at[2] < part[2];
      EXPECT_EQ(whole.GetInt(i), inside ? (at[0] * part[1] + at[1]) * part[2] + at[2] + 1 : 0) << ShapeToString(part);
    }
    PackBox(whole.mutable_data(), 2, extents, part);
    for (int64_t i = 0; i < small.num_elements(); ++i) EXPECT_EQ(whole.GetInt(i), small.GetInt(i));
  }
}

}  // namespace
}  // namespace fusion
