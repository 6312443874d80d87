#include "compiler/ops/shared/broadcast.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusion::ops {
namespace {

class BroadcastTest : public testing::Test {
 protected:
  absl::StatusOr<Shape> Common(const std::vector<Shape>& shapes) const { return BroadcastShapes(context_, shapes); }

  const std::string op_ = "Add", name_ = "n1";
  const ecg::Attributes attrs_;
  const OpContext context_{op_, name_, attrs_, {}};
};

TEST_F(BroadcastTest, ShapesAlignAtTheRight) {
  EXPECT_EQ(Common({{2, 3, 4}, {4}}).value(), (Shape{2, 3, 4}));
  EXPECT_EQ(Common({{4, 1}, {3}, {2, 1, 1}}).value(), (Shape{2, 4, 3}));
  EXPECT_EQ(Common({{}, {}}).value(), Shape{});
  EXPECT_EQ(Common({}).value(), Shape{});
}

TEST_F(BroadcastTest, AnEmptyExtentStretchesOnesOnly) {
  EXPECT_EQ(Common({{0}, {1}}).value(), Shape{0});
  EXPECT_EQ(Common({{1}, {0}}).value(), Shape{0});
  EXPECT_FALSE(Common({{0}, {2}}).ok());
}

TEST_F(BroadcastTest, DisagreementNamesTheNodeAndBothShapes) {
  const absl::Status status = Common({{2, 3}, {2, 1}, {4}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  for (const char* part : {"n1", "[2, 3]", "[4]"}) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " in " << status;
  }
}

TEST_F(BroadcastTest, StretchedExtentsAreReadAtZero) {
  const te::Index b(te::Axis{0, 2}), m(te::Axis{1, 4}), n(te::Axis{2, 3});
  EXPECT_EQ(BroadcastIndex({4, 1}, {b, m, n}), (te::Builder::Idx{m, te::Index(0)}));
  EXPECT_EQ(BroadcastIndex({}, {b, m, n}), te::Builder::Idx{});
  EXPECT_EQ(BroadcastIndex({2, 4, 3}, {b, m, n}), (te::Builder::Idx{b, m, n}));
}

}  // namespace
}  // namespace fusion::ops
