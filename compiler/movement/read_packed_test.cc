#include "compiler/movement/read_packed.h"

#include <gtest/gtest.h>

#include "compiler/movement/pack_constant.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Cmp;
using te::Index;

// [n, k] in panels of 16 rows, each [k, 16].
Pack Panels(int64_t n, int64_t k) {
  const Axis tile{0, (n + 15) / 16}, column{1, k}, lane{2, 16};
  Pack pack;
  pack.axes = {tile, column, lane};
  const Index row = Index(tile) * 16 + Index(lane);
  pack.address = row * k + Index(column);
  if (n % 16 != 0) pack.pred = {{row, Cmp::kLt, Index(n)}};
  return pack;
}

TEST(PackedAddress, IsWhereThePackedBoxHasTheElement) {
  for (const int64_t n : {64, 50}) {
    const Pack pack = Panels(n, 7);
    Tensor source(DType::kI32, {n, 7});
    for (int64_t i = 0; i < n * 7; ++i) source.SetInt(i, i + 1);
    const Tensor packed = PackedConstant(pack, source);
    for (int64_t i = 0; i < n * 7; ++i) {
      const std::optional<Index> address = PackedAddress(pack, n * 7, Index(i));
      ASSERT_TRUE(address.has_value());
      ASSERT_TRUE(address->IsConstant());
      EXPECT_EQ(packed.GetInt(address->constant()), i + 1);
    }
  }
}

TEST(PackedAddress, OfARowOfData) {
  const Axis along{5, 7};
  const Index row = Index::Load(3, {Index(0)}, {0, 63});
  const std::optional<Index> address = PackedAddress(Panels(64, 7), 64 * 7, row * 7 + Index(along));
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(te::ToString(*address), te::ToString(te::FloorDiv(row, 16) * 112 + te::Mod(row, 16) + Index(along) * 16));
}

TEST(PackedAddress, IsRefusedWhereElementsAreMissingRepeatedOrChanged) {
  EXPECT_TRUE(PackedAddress(Panels(50, 7), 50 * 7, Index(0)).has_value());
  EXPECT_FALSE(PackedAddress(Panels(50, 7), 51 * 7, Index(0)).has_value());  // the pack holds a part only
  Pack repeated = Panels(64, 7);
  repeated.axes.push_back({9, 2});
  EXPECT_FALSE(PackedAddress(repeated, 64 * 7, Index(0)).has_value());
  Pack shifted = Panels(64, 7);
  shifted.address = shifted.address + Index(1);
  EXPECT_FALSE(PackedAddress(shifted, 64 * 7, Index(0)).has_value());
  Pack overlapping = Panels(64, 7);
  overlapping.address = Index(overlapping.axes[0]) * 8 + Index(overlapping.axes[1]) + Index(overlapping.axes[2]);
  EXPECT_FALSE(PackedAddress(overlapping, 64 * 7, Index(0)).has_value());
  Pack transformed = Panels(64, 7);
  transformed.transform.by_dimension = {{0, Tensor(DType::kF32, {4, 3})}};
  EXPECT_FALSE(PackedAddress(transformed, 64 * 7, Index(0)).has_value());
}

}  // namespace
}  // namespace fusion::movement
