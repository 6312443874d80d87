#include "compiler/bundle/weights.h"

#include <gtest/gtest.h>

#include "compiler/movement/pack_constant.h"

namespace fusion {
namespace {

using movement::Pack;
using te::Axis;
using te::Cmp;
using te::Index;

Tensor Numbered(int64_t elements) {
  Tensor source(DType::kI32, {elements});
  for (int64_t i = 0; i < elements; ++i) source.SetInt(i, i + 1);
  return source;
}

bool SameBytes(const Pack& a, const Pack& b, int64_t elements) {
  const Tensor source = Numbered(elements);
  const Tensor one = movement::PackedConstant(a, source), other = movement::PackedConstant(b, source);
  if (one.num_elements() != other.num_elements()) return false;
  for (int64_t i = 0; i < one.num_elements(); ++i) {
    if (one.GetInt(i) != other.GetInt(i)) return false;
  }
  return true;
}

// A matrix of 12 by 96 in panels of 16 columns, whose number is one axis or two.
Pack Panels() {
  const Axis panel{0, 6}, k{1, 12}, lane{2, 16};
  return {-1, {panel, k, lane}, Index(panel) * 16 + Index(k) * 96 + Index(lane), {}, {}};
}
Pack GroupedPanels() {
  const Axis group{7, 3}, panel{3, 2}, one{9, 1}, k{5, 12}, half{6, 2}, lane{8, 8};
  return {-1,
          {group, panel, one, k, half, lane},
          Index(group) * 32 + Index(panel) * 16 + Index(k) * 96 + Index(half) * 8 + Index(lane),
          {},
          {}};
}

TEST(PackingText, IsEqualForAxesThatAreCutDifferently) {
  ASSERT_TRUE(SameBytes(Panels(), GroupedPanels(), 12 * 96));
  EXPECT_EQ(PackingText(Panels()), PackingText(GroupedPanels()));
}

TEST(PackingText, TellsOrdersPartsAndWidthsApart) {
  Pack wide = Panels();
  wide.axes[0].extent = 3;
  wide.axes[2].extent = 32;
  wide.address = Index(wide.axes[0]) * 32 + Index(wide.axes[1]) * 96 + Index(wide.axes[2]);
  EXPECT_FALSE(SameBytes(Panels(), wide, 12 * 96));
  EXPECT_NE(PackingText(Panels()), PackingText(wide));
  Pack part = Panels();
  part.address = part.address + Index(16);
  EXPECT_NE(PackingText(Panels()), PackingText(part));
  Pack order = Panels();
  std::swap(order.axes[0], order.axes[1]);
  EXPECT_NE(PackingText(Panels()), PackingText(order));
}

TEST(PackingText, ComparesWhatConditionsSay) {
  Pack padded = Panels(), cut = GroupedPanels(), shorter = Panels();
  const auto column = [](const Pack& pack, std::vector<int64_t> strides) {
    Index sum;
    for (size_t a = 0; a < strides.size(); ++a) sum = sum + Index(pack.axes[a]) * strides[a];
    return sum;
  };
  padded.pred = {{column(padded, {16, 0, 1}), Cmp::kLt, Index(90)}};
  shorter.pred = {{column(shorter, {16, 0, 1}), Cmp::kLt, Index(89)}};
  cut.pred = {{column(cut, {32, 16, 0, 0, 8, 1}), Cmp::kLt, Index(90)},
              {Index(cut.axes[0]), Cmp::kLt, Index(3)}};  // which always holds
  ASSERT_TRUE(SameBytes(padded, cut, 12 * 96));
  EXPECT_EQ(PackingText(padded), PackingText(cut));
  EXPECT_NE(PackingText(padded), PackingText(shorter));
  EXPECT_NE(PackingText(padded), PackingText(Panels()));
  // Not strides: rows modulo something.
  Pack folded = Panels();
  folded.address = te::Mod(folded.address, 100);
  EXPECT_NE(PackingText(folded), PackingText(Panels()));
}

TEST(KeepsOrder, WhereThePackedBoxIsTheSource) {
  const Axis row{0, 12}, panel{1, 6}, lane{2, 16};
  const Pack pack{-1, {row, panel, lane}, Index(row) * 96 + Index(panel) * 16 + Index(lane), {}, {}};
  EXPECT_TRUE(KeepsOrder(pack, 12 * 96));
  EXPECT_FALSE(KeepsOrder(pack, 13 * 96));  // a part of it
  EXPECT_FALSE(KeepsOrder(Panels(), 12 * 96));
}

}  // namespace
}  // namespace fusion
