#include "compiler/movement/tile_reads.h"

#include <gtest/gtest.h>

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;

const Axis kRow{0, 14}, kLane{1, 16}, kTerm{2, 256};

te::Scalar ReadAt(const Index& address, DType dtype = DType::kF32) { return te::Load(0, dtype, {address}); }

TileReads Reads(const te::Scalar& left, const te::Scalar& right) {
  te::Reduction reduction;
  reduction.axes = {kTerm};
  return ReadsOfTile(left * right, reduction, kLane.id, kRow.id);
}

TEST(ReadsOfTile, OfAProduct) {
  const te::Scalar weights = ReadAt(Index(kTerm) * 16 + Index(kLane));
  const TileReads reads = Reads(ReadAt(Index(kRow) * 256 + Index(kTerm)), weights);
  EXPECT_TRUE(reads.broadcast);
  EXPECT_TRUE(reads.shared);
  EXPECT_EQ(reads.row_stride, 1024);
  const te::Scalar halves = te::Cast(DType::kF32, ReadAt(Index(kRow) * 256 + Index(kTerm), DType::kF16));
  EXPECT_EQ(Reads(halves, weights).row_stride, 512);
}

// The next term of a row lies in another line: no line is kept for it.
TEST(ReadsOfTile, LinesThatServeOneTermAreNotKept) {
  const TileReads reads =
      Reads(ReadAt(Index(kRow) * 1024 + Index(kTerm) * 32), ReadAt(Index(kTerm) * 16 + Index(kLane)));
  EXPECT_TRUE(reads.broadcast);
  EXPECT_EQ(reads.row_stride, 0);
}

TEST(ReadsOfTile, OfRowsThatShareNothing) {
  const TileReads reads =
      Reads(ReadAt(Index(kRow) * 4096 + Index(kTerm) * 16 + Index(kLane)), ReadAt(Index(kRow) * 1024 + Index(kTerm)));
  EXPECT_FALSE(reads.shared);
  EXPECT_FALSE(reads.broadcast) << "rows that share no vectors load their own";
}

}  // namespace
}  // namespace fusion::movement
