#include "compiler/cost/port_model.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(TileCycles, AreThoseOfTheBusiestPort) {
  const PortModel ports;
  // 24 FMAs on two ports; 8 broadcasts and 3 shared vectors on two ports take 5.5.
  EXPECT_EQ(TileCycles(ports, 8, 3, /*has_broadcast=*/true, /*has_shared=*/true), 12);
  // Each row loads its own vectors, so loads and FMAs take as long.
  EXPECT_EQ(TileCycles(ports, 8, 3, false, false), 12);
  // Rows that load their own vectors beside shared ones: 24 + 3 loads.
  EXPECT_EQ(TileCycles(ports, 8, 3, false, true), 13.5);
  // Two FMAs wait for those of the step before.
  EXPECT_EQ(TileCycles(ports, 2, 1, true, true), 5);
  // One row streams the shared vectors from the second-level cache.
  EXPECT_EQ(TileCycles(ports, 1, 8, true, true), 12);
}

TEST(TileCycles, FollowThePorts) {
  PortModel wide;
  wide.fmas_per_cycle = 4;
  EXPECT_EQ(TileCycles(wide, 8, 3, true, true), 6);
  wide.loads_per_cycle = 1;
  EXPECT_EQ(TileCycles(wide, 8, 3, true, true), 11);
  wide.step_cycles = 20;
  EXPECT_EQ(TileCycles(wide, 8, 3, true, true), 20);
  wide.stream_cycles = 10;
  EXPECT_EQ(TileCycles(wide, 8, 3, true, true), 30);
  EXPECT_EQ(TileCycles(wide, 8, 3, true, false), 20);
}

}  // namespace
}  // namespace fusion
