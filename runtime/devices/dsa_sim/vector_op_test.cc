#include "runtime/devices/dsa_sim/vector_op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion::dsa {
namespace {

TEST(VectorOp, NamesAreInverse) {
  for (int i = 0; i <= static_cast<int>(VectorOp::kMaximum); ++i) {
    const VectorOp op = static_cast<VectorOp>(i);
    EXPECT_EQ(ParseVectorOp(GetVectorOpInfo(op).name), op);
  }
  EXPECT_EQ(ParseVectorOp("gelu"), std::nullopt);
}

TEST(VectorOp, Computes) {
  EXPECT_EQ(ApplyVectorOp(VectorOp::kRelu, -2, 0), 0);
  EXPECT_EQ(ApplyVectorOp(VectorOp::kSub, 2, 5), -3);
  EXPECT_EQ(ApplyVectorOp(VectorOp::kDiv, 1, -4), -0.25f);
  EXPECT_EQ(ApplyVectorOp(VectorOp::kMin, -1, 3), -1);
  EXPECT_EQ(ApplyVectorOp(VectorOp::kReciprocal, -4, 0), -0.25f);
  EXPECT_FLOAT_EQ(ApplyVectorOp(VectorOp::kErf, 0.5f, 0), 0.5204999f);
}

TEST(VectorOp, NaNStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const VectorOp op : {VectorOp::kRelu, VectorOp::kMax, VectorOp::kMin, VectorOp::kMaximum, VectorOp::kSum}) {
    EXPECT_TRUE(std::isnan(ApplyVectorOp(op, nan, 1))) << GetVectorOpInfo(op).name;
  }
  EXPECT_TRUE(std::isnan(ApplyVectorOp(VectorOp::kMax, 1, nan)));
  EXPECT_TRUE(std::isnan(ApplyVectorOp(VectorOp::kMin, 1, nan)));
}

}  // namespace
}  // namespace fusion::dsa
