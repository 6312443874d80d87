#include "compiler/schedule/tile/tile_shape.h"

#include <gtest/gtest.h>

#include <tuple>

#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;

TEST(TileShape, FitsTheRegisters) {
  for (int registers : {16, 32}) {
    const DeviceModel device = Device(registers == 32 ? 64 : 32, registers);
    for (int64_t rows : {1, 2, 5, 7, 8, 14, 28, 49, 128, 197, 1000}) {
      for (int64_t vectors : {1, 2, 3, 4, 6, 48}) {
        const TileShape shape = ChooseTileShape(rows, vectors, true, true, device);
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
  const TileShape gemm = ChooseTileShape(128, 48, true, true, wide);
  EXPECT_EQ(gemm.rows, 8) << gemm.rows << "x" << gemm.vectors;
  const TileShape row28 = ChooseTileShape(28, 4, true, true, wide);
  EXPECT_EQ(28 % row28.rows, 0) << row28.rows << "x" << row28.vectors;
  const TileShape narrow = ChooseTileShape(128, 96, true, true, Device(32, 16));
  EXPECT_EQ(narrow.rows, 6) << narrow.rows << "x" << narrow.vectors;
}

// Seven vectors in a row: a broadcast that is an instruction of its own should serve two of them, though the eighth is
// empty.
TEST(TileShape, BroadcastsServeTwoVectorsWithAvx2) {
  DeviceModel device = Device(32, 16);
  device.isa = "avx2";
  EXPECT_EQ(ChooseTileShape(64, 7, true, true, device).vectors, 2);
  device.isa = "neon";
  EXPECT_EQ(ChooseTileShape(64, 7, true, true, device).vectors, 1);
}

// Nothing is read twice: whole rows of vectors, and few rows, each of which is a stream.
TEST(TileShape, ReadsStreamsInWholeRows) {
  for (const auto& [rows, vectors, of_tile, wide] :
       {std::tuple(32, 2, 4, 2), std::tuple(16, 8, 1, 8), std::tuple(1, 3, 1, 3), std::tuple(100, 4, 2, 4)}) {
    const TileShape shape = ChooseTileShape(rows, vectors, false, false, Device());
    EXPECT_EQ(shape.rows, of_tile) << rows << "x" << vectors;
    EXPECT_EQ(shape.vectors, wide) << rows << "x" << vectors;
  }
  EXPECT_GE(ChooseTileShape(32, 1, false, false, Device()).rows, 8) << "one vector a row: rows cover the latency";
}

// Work-items beside each other take vectors beside each other, and few rows each, so that there are many of them.
TEST(TileShape, IsSmallForASingleWorkItem) {
  const TileShape product = ChooseTileShape(128, 48, true, true, testing::GroupDevice());
  EXPECT_EQ(product.vectors, 1);
  EXPECT_LE(product.rows, 4);
  const TileShape stream = ChooseTileShape(128, 48, false, false, testing::GroupDevice());
  EXPECT_EQ(stream.vectors, 1);
  EXPECT_EQ(stream.rows, 1);
}

}  // namespace
}  // namespace fusion
