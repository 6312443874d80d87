#include "compiler/ops/shared/axes.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace fusion::ops {
namespace {

class AxesTest : public testing::Test {
 protected:
  const std::string op_ = "Reduce", name_ = "n1";
  const ecg::Attributes attrs_;
  const OpContext context_{op_, name_, attrs_, {}};
};

TEST_F(AxesTest, NegativeAxesCountFromTheEnd) {
  EXPECT_EQ(NormalizeAxis(context_, -1, 3).value(), 2);
  EXPECT_EQ(NormalizeAxis(context_, -3, 3).value(), 0);
  EXPECT_EQ(NormalizeAxes(context_, {-1, 0}, 3).value(), (std::vector<int>{0, 2}));
}

TEST_F(AxesTest, AxesOutsideTheTensorAreRefusedByName) {
  constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min(), kLargest = std::numeric_limits<int64_t>::max();
  for (const int64_t axis : {int64_t{3}, int64_t{-4}, kSmallest, kLargest}) {
    const absl::Status status = NormalizeAxis(context_, axis, 3).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << axis;
    EXPECT_NE(status.message().find("n1"), std::string::npos) << status;
  }
  EXPECT_FALSE(NormalizeAxis(context_, 0, 0).ok()) << "a scalar has no axis";
  EXPECT_FALSE(NormalizeAxes(context_, {2, -1}, 3).ok()) << "both are the last axis";
}

TEST_F(AxesTest, AViewKeepsTheElements) {
  const AxisView view = ViewAlong({2, 3, 5, 7}, 2);
  EXPECT_EQ(view.outer, 6);
  EXPECT_EQ(view.extent, 5);
  EXPECT_EQ(view.inner, 7);
  const AxisView empty = ViewAlong({4, 0}, 0);
  EXPECT_EQ(empty.outer, 1);
  EXPECT_EQ(empty.extent, 4);
  EXPECT_EQ(empty.inner, 0);
}

// Every way to choose axes of a tensor: parting a shape and its coordinates loses nothing.
TEST_F(AxesTest, MergeIsTheInverseOfWithoutAndAt) {
  const Shape shape = {2, 3, 5, 7};
  for (int chosen = 0; chosen < 16; ++chosen) {
    std::vector<int> axes;
    te::Builder::Idx index, at;
    for (int d = 0; d < 4; ++d) {
      index.push_back(te::Index(te::Axis{d, shape[d]}));
      if ((chosen >> d & 1) == 0) continue;
      axes.push_back(d);
      at.push_back(index.back());
    }
    EXPECT_EQ(MergeIndex(IndexWithout(index, axes), at, axes), index) << chosen;
    EXPECT_EQ(NumElements(ShapeWithout(shape, axes)) * NumElements(ShapeAt(shape, axes)), 210) << chosen;
  }
}

}  // namespace
}  // namespace fusion::ops
