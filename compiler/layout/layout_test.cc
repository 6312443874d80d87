#include "compiler/layout/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

TEST(LayoutTest, BlockedMap) {
  const Layout layout{1, 16};
  EXPECT_EQ(layout.PhysicalShape({2, 24, 5, 7}), (Shape{2, 2, 5, 7, 16}));
  EXPECT_EQ(Layout().PhysicalShape({2, 24}), (Shape{2, 24}));
  EXPECT_TRUE(Layout().plain());
  const te::Axis c{0, 24};
  const std::vector<te::Index> at = layout.Apply({te::Index(1), te::Index(c), te::Index(3), te::Index(4)});
  ASSERT_EQ(at.size(), 5u);
  EXPECT_EQ(at[1], te::FloorDiv(te::Index(c), 16));
  EXPECT_EQ(at[4], te::Mod(te::Index(c), 16));
  EXPECT_EQ(layout.ToString(4), "(d0, d1, d2, d3) -> (d0, d1//16, d2, d3, d1%16)");
  EXPECT_EQ(Layout().ToString(4), "plain");
}

TEST(LayoutTest, AxisBehindAllOthers) {
  const Layout layout{1, Layout::kWhole};
  EXPECT_EQ(layout.PhysicalShape({2, 24, 5, 7}), (Shape{2, 5, 7, 24}));
  const std::vector<te::Index> at = layout.Apply({te::Index(1), te::Index(2), te::Index(3), te::Index(4)});
  EXPECT_EQ(at, (std::vector<te::Index>{te::Index(1), te::Index(3), te::Index(4), te::Index(2)}));
  EXPECT_EQ(layout.ToString(4), "(d0, d1, d2, d3) -> (d0, d2, d3, d1)");
}

}  // namespace
}  // namespace fusion
