#include "compiler/schedule/tile/tile_shape.h"

#include <gtest/gtest.h>

#include <tuple>
#include <utility>

#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;

// Rows that multiply a shared row of vectors by broadcasts; rows that share nothing.
constexpr TileReads kProduct{.broadcast = true, .shared = true}, kStreams;

TEST(TileShape, FitsTheRegisters) {
  for (int registers : {16, 32}) {
    const DeviceModel device = Device(registers == 32 ? 64 : 32, registers);
    for (int64_t rows : {1, 2, 5, 7, 8, 14, 28, 49, 128, 197, 1000}) {
      for (int64_t vectors : {1, 2, 3, 4, 6, 48}) {
        const TileShape shape = ChooseTileShape(rows, vectors, kProduct, device);
        EXPECT_LE(shape.rows, rows);
        EXPECT_LE(shape.vectors, vectors);
        EXPECT_LE(shape.rows * shape.vectors + shape.vectors + 1, registers) << rows << " " << vectors;
        // There are enough independent sums to hide the latency, where the problem has them.
        if (rows >= 8 && vectors >= 3) {
          EXPECT_GE(shape.rows * shape.vectors, 8) << rows << " " << vectors;
        }
      }
    }
  }
}

TEST(TileShape, IsAsGoodAsTheMeasuredOnes) {
  const DeviceModel wide = Device();
  const TileShape gemm = ChooseTileShape(128, 48, kProduct, wide);
  EXPECT_EQ(gemm.rows, 8) << gemm.rows << "x" << gemm.vectors;
  const TileShape row28 = ChooseTileShape(28, 4, kProduct, wide);
  EXPECT_EQ(28 % row28.rows, 0) << row28.rows << "x" << row28.vectors;
  const TileShape narrow = ChooseTileShape(128, 96, kProduct, Device(32, 16));
  EXPECT_EQ(narrow.rows, 6) << narrow.rows << "x" << narrow.vectors;
}

// Rows whose elements lie whole pages apart share a set of the nearest cache, which holds eight of them.
TEST(TileShape, HasNoMoreRowsThanASetHasWays) {
  TileReads pages = kProduct;
  pages.row_stride = 8192;
  for (const auto& [rows, vectors] : {std::pair(196, 32), std::pair(128, 4), std::pair(50, 16), std::pair(14, 1)}) {
    EXPECT_LE(ChooseTileShape(rows, vectors, pages, Device()).rows, 8) << rows << "x" << vectors;
    EXPECT_GE(ChooseTileShape(rows, vectors, kProduct, Device()).rows, 8) << rows << "x" << vectors;
  }
  EXPECT_EQ(ChooseTileShape(196, 32, kProduct, Device()).rows, 14);
}

// Seven vectors in a row: a broadcast that is an instruction of its own should serve two of them, though the eighth is
// empty.
TEST(TileShape, BroadcastsServeTwoVectorsWithAvx2) {
  DeviceModel device = Device(32, 16);
  device.isa = "avx2";
  EXPECT_EQ(ChooseTileShape(64, 7, kProduct, device).vectors, 2);
  device.isa = "neon";
  EXPECT_EQ(ChooseTileShape(64, 7, kProduct, device).vectors, 1);
}

// Nothing is read twice: whole rows of vectors, and few rows, each of which is a stream.
TEST(TileShape, ReadsStreamsInWholeRows) {
  for (const auto& [rows, vectors, of_tile, wide] :
       {std::tuple(32, 2, 4, 2), std::tuple(16, 8, 1, 8), std::tuple(1, 3, 1, 3), std::tuple(100, 4, 2, 4)}) {
    const TileShape shape = ChooseTileShape(rows, vectors, kStreams, Device());
    EXPECT_EQ(shape.rows, of_tile) << rows << "x" << vectors;
    EXPECT_EQ(shape.vectors, wide) << rows << "x" << vectors;
  }
  EXPECT_GE(ChooseTileShape(32, 1, kStreams, Device()).rows, 8) << "one vector a row: rows cover the latency";
}

// Work-items beside each other take vectors beside each other, and few rows each, so that there are many of them.
TEST(TileShape, IsSmallForASingleWorkItem) {
  const TileShape product = ChooseTileShape(128, 48, kProduct, testing::GroupDevice());
  EXPECT_EQ(product.vectors, 1);
  EXPECT_LE(product.rows, 4);
  const TileShape stream = ChooseTileShape(128, 48, kStreams, testing::GroupDevice());
  EXPECT_EQ(stream.vectors, 1);
  EXPECT_EQ(stream.rows, 1);
}

}  // namespace
}  // namespace fusion
