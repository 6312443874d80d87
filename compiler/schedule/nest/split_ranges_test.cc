#include "compiler/schedule/nest/split_ranges.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace fusion {
namespace {

TEST(SplitRanges, PeeledRangesHaveNoCondition) {
  for (const bool turned : {false, true}) {  // tests of the axis, and of its negative
    AxisSource axes(0);
    const te::Axis row = axes.New(5), x = axes.New(50);
    const te::Index at = turned ? te::Index(46) - te::Index(x) : te::Index(x) - 3;  // x in [3, 47)
    const te::Pred inside = {{at, te::Cmp::kGe, te::Index(0)},
                             {at, te::Cmp::kLt, te::Index(44)},
                             {te::Index(row), te::Cmp::kLt, te::Index(4)}};
    Nest nest;
    nest.axes = {row, x};
    nest.body = {te::If(inside, te::Load(0, DType::kF32, {at}), te::Imm(DType::kF32, 0))};
    const std::vector<Nest> parts = PeelInnermost(nest, &axes);
    ASSERT_EQ(parts.size(), 3u) << turned;
    const std::vector<int64_t> extents = {parts[0].axes[1].extent, parts[1].axes[1].extent, parts[2].axes[1].extent};
    EXPECT_EQ(extents, (std::vector<int64_t>{3, 44, 3})) << turned;
    EXPECT_EQ(parts[0].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[2].body[0]->kind, te::ScalarKind::kImm);
    EXPECT_EQ(parts[1].body[0]->pred.size(), 1u);  // the test of the row
    EXPECT_FALSE(PredUses(parts[1], parts[1].axes[1].id));
  }
}

// A map over 10 rows of which the first 4 are read from one buffer and the others from another (a Concat).
Nest TwoParts(AxisSource* axes) {
  const te::Axis row = axes->New(10), x = axes->New(3);
  Nest nest;
  nest.axes = {row, x};
  nest.body = {te::If({{te::Index(row), te::Cmp::kLt, te::Index(4)}},
                      te::Load(0, DType::kF32, {te::Index(row) * 3 + te::Index(x)}),
                      te::Load(1, DType::kF32, {te::Index(row) * 3 + te::Index(x) - 12}))};
  nest.stores = {{2, te::Index(row) * 3 + te::Index(x)}};
  nest.store_types = {DType::kF32};
  return nest;
}

TEST(SplitRanges, EachRangeIsAMapOverItsOwnElements) {
  AxisSource axes(0);
  const std::vector<Nest> parts = SplitRanges(TwoParts(&axes), &axes, [](const Nest&) { return true; });
  ASSERT_EQ(parts.size(), 2u);
  const int64_t extents[] = {4, 6}, first_stored[] = {0, 12}, last_stored[] = {11, 29};
  for (size_t p = 0; p < 2; ++p) {
    EXPECT_EQ(parts[p].axes[0].extent, extents[p]);
    const te::Interval stored = parts[p].stores[0].address.Range();
    EXPECT_EQ(stored.lo, first_stored[p]);
    EXPECT_EQ(stored.hi, last_stored[p]);
    te::Visit(parts[p].body[0], [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad) EXPECT_GE(node.indices[0].Range().lo, 0) << p;
    });
  }
}

TEST(SplitRanges, ANestStaysWholeWhereOneRangeIsTooSmall) {
  AxisSource axes(0);
  const auto worth = [](const Nest& nest) { return nest.axes[0].extent >= 5; };
  EXPECT_EQ(SplitRanges(TwoParts(&axes), &axes, worth).size(), 1u);
}

TEST(SplitRanges, AReductionIsNotSplit) {
  AxisSource axes(0);
  Nest nest = TwoParts(&axes);
  nest.reduction = te::Reduction{te::ReductionKind::kSum, {axes.New(7)}, {}, DType::kF32, {}};
  EXPECT_EQ(SplitRanges(nest, &axes, [](const Nest&) { return true; }).size(), 1u);
  EXPECT_EQ(PeelInnermost(nest, &axes).size(), 1u);
}

}  // namespace
}  // namespace fusion
