#include "compiler/cost/tile_cycles.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

constexpr TileReads kProduct{.broadcast = true, .shared = true};

TEST(TileCycles, AreThoseOfTheBusiestPort) {
  const DeviceModel device;
  // 24 FMAs on two ports; 8 broadcasts and 3 shared vectors on two ports take 5.5.
  EXPECT_EQ(TileCycles(device, 8, 3, kProduct), 12);
  // Each row loads its own vectors, so loads and FMAs take as long.
  EXPECT_EQ(TileCycles(device, 8, 3, {}), 12);
  // Rows that load their own vectors beside shared ones: 24 + 3 loads.
  EXPECT_EQ(TileCycles(device, 8, 3, {.shared = true}), 13.5);
  // Two FMAs wait for those of the step before.
  EXPECT_EQ(TileCycles(device, 2, 1, kProduct), 5);
  // One row streams the shared vectors from the second-level cache.
  EXPECT_EQ(TileCycles(device, 1, 8, kProduct), 12);
}

TEST(TileCycles, FollowThePorts) {
  DeviceModel wide;
  wide.ports.fmas_per_cycle = 4;
  EXPECT_EQ(TileCycles(wide, 8, 3, kProduct), 6);
  wide.ports.loads_per_cycle = 1;
  EXPECT_EQ(TileCycles(wide, 8, 3, kProduct), 11);
  wide.ports.step_cycles = 20;
  EXPECT_EQ(TileCycles(wide, 8, 3, kProduct), 20);
  wide.ports.stream_cycles = 10;
  EXPECT_EQ(TileCycles(wide, 8, 3, kProduct), 30);
  EXPECT_EQ(TileCycles(wide, 8, 3, {.broadcast = true}), 20);
}

// Rows of 2,048 floats begin at the same place of their pages. A set of eight ways holds eight of them.
TEST(TileCycles, CountLinesThatPushEachOtherOut) {
  const DeviceModel device;
  TileReads reads = kProduct;
  reads.row_stride = 8192;
  EXPECT_EQ(TileCycles(device, 8, 3, reads), 12);
  EXPECT_EQ(TileCycles(device, 14, 2, reads), 1.5 * (14 + 2));
  reads.row_stride = -8192;
  EXPECT_EQ(TileCycles(device, 14, 2, reads), 1.5 * (14 + 2));
  reads.row_stride = 8192 + 64;
  EXPECT_EQ(TileCycles(device, 14, 2, reads), 14);
  reads.broadcast = false;  // each line is read once
  reads.row_stride = 8192;
  EXPECT_EQ(TileCycles(device, 14, 2, reads), TileCycles(device, 14, 2, {.shared = true}));
}

TEST(ConflictingRows, AreThoseOfFullSets) {
  const PortModel ports;
  EXPECT_EQ(ConflictingRows(ports, 64, 14, 0), 0);
  EXPECT_EQ(ConflictingRows(ports, 64, 14, 64), 0);
  EXPECT_EQ(ConflictingRows(ports, 64, 14, 2048), 0) << "seven in each of two sets";
  EXPECT_EQ(ConflictingRows(ports, 64, 17, 2048), 9) << "nine in one set, eight in the other";
  EXPECT_EQ(ConflictingRows(ports, 64, 9, 3 * 4096), 9);
  EXPECT_EQ(ConflictingRows(ports, 64, 28, 4), 0) << "two lines";
}

}  // namespace
}  // namespace fusion
