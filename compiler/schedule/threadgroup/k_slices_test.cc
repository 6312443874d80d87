#include "compiler/schedule/threadgroup/k_slices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

namespace fusion {
namespace {

using te::Axis;

Multiplier Elements() { return {}; }
Multiplier Fragments(bool from_memory) {
  Multiplier by;
  by.product = {16, 16, 16, 32, from_memory};
  by.dtype = DType::kF16;
  return by;
}

// Every element has a place of its own inside the slice.
TEST(KSlices, PlacesAreDistinct) {
  for (const Multiplier& by : {Elements(), Fragments(false), Fragments(true)}) {
    for (const bool along_k_slice : {false, true}) {
      const Axis side{0, 32}, depth{1, 16};
      const te::Index place = PlaceInKSlice(by, side, depth, along_k_slice);
      const int64_t elements = KSliceElements(by, depth.extent, side.extent, along_k_slice);
      std::set<int64_t> places;
      for (int64_t s = 0; s < side.extent; ++s) {
        for (int64_t d = 0; d < depth.extent; ++d) {
          const te::Index at_side(s), at_depth(d);
          const te::Index at =
              te::Substitute(place, [&](const Axis& axis) { return axis.id == side.id ? &at_side : &at_depth; });
          ASSERT_TRUE(at.IsConstant());
          EXPECT_LT(at.constant(), elements);
          places.insert(at.constant());
        }
      }
      EXPECT_EQ(places.size(), 32u * 16u);
      EXPECT_EQ(*places.begin(), 0);
    }
  }
}

// Rows are padded where work-items would otherwise meet in a bank: plain elements that are copied along the reduction,
// and fragments that are read from registers.
TEST(KSlices, PaddingAgainstBankConflicts) {
  EXPECT_EQ(KSliceElements(Elements(), 16, 32, false), 16 * 32);
  EXPECT_GT(KSliceElements(Elements(), 16, 32, true), 16 * 32);
  EXPECT_GT(KSliceElements(Fragments(false), 16, 32, false), 16 * 32);
  EXPECT_EQ(KSliceElements(Fragments(true), 16, 32, false), 16 * 32) << "the instruction knows the layout blocks";
}

TEST(KSlices, LoopsFollowTheOperand) {
  const Axis side{0, 32}, depth{1, 16};
  const auto ids = [&](const Multiplier& by, bool packed, bool along_k_slice) {
    AxisSource axes(2);
    std::vector<int> ids;
    for (const Axis& axis : KSliceAxes(by, side, depth, &axes).Loops(packed, along_k_slice)) ids.push_back(axis.id);
    return ids;
  };
  EXPECT_EQ(ids(Elements(), false, false), (std::vector<int>{1, 0}));
  EXPECT_EQ(ids(Elements(), false, true), (std::vector<int>{0, 1}));
  EXPECT_EQ(ids(Elements(), true, true), (std::vector<int>{1, 0})) << "packed: in the order of the slice";
  // Each axis is cut in two by the layout blocks: axes 2 and 3 are the side, 4 and 5 the depth.
  EXPECT_EQ(ids(Fragments(true), true, false), (std::vector<int>{2, 4, 3, 5}));
  AxisSource axes(2);
  const KSliceAxes cut(Fragments(true), side, depth, &axes);
  ASSERT_NE(cut.Find(side), nullptr);
  EXPECT_TRUE(cut.Find(side)->UsesAxis(2) && cut.Find(side)->UsesAxis(3));
  EXPECT_EQ(cut.Find(Axis{9, 4}), nullptr);
}

// Vectors of an operand that lies along the reduction are copied and loaded whole.
TEST(KSlices, VectorsAlongTheReductionStayWhole) {
  const Axis side{0, 32}, depth{1, 16};
  const te::Index place = PlaceInKSlice(Elements(), side, depth, /*along_k_slice=*/true);
  int64_t along = 0, pitch = 0;
  EXPECT_TRUE(place.AffineIn(depth.id, &along));
  EXPECT_TRUE(place.AffineIn(side.id, &pitch));
  EXPECT_EQ(along, 1);
  EXPECT_EQ(pitch % 4, 0);
  EXPECT_NE(pitch % 32, 0) << "rows begin in other banks";
}

}  // namespace
}  // namespace fusion
