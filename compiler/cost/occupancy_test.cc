#include "compiler/cost/occupancy.h"

#include <gtest/gtest.h>

#include "compiler/cost/stored_devices.h"

namespace fusion {
namespace {

// The expected figures are those of NVIDIA's occupancy calculator.
TEST(Occupancy, IsWhatTheOccupancyCalculatorSays) {
  struct Case {
    const char* target;
    GroupDemand demand;
    int groups;
    double share;
    const char* limit;
  };
  for (const Case& c : {
           Case{"cuda:sm_80", {64, 24, 0}, 32, 1, "work-groups"},
           Case{"cuda:sm_80", {64, 32, 0}, 32, 1, "work-groups"},
           Case{"cuda:sm_80", {256, 32, 0}, 8, 1, "work-items"},
           Case{"cuda:sm_80", {256, 33, 0}, 6, 0.75, "registers"},  // 33 registers are 40
           Case{"cuda:sm_80", {64, 255, 0}, 4, 0.125, "registers"},
           Case{"cuda:sm_80", {64, 32, 48 << 10}, 3, 0.09375, "shared memory"},  // 49 KiB of 164
           Case{"cuda:sm_90", {64, 32, 48 << 10}, 4, 0.125, "shared memory"},    // of 228
           Case{"cuda:sm_75", {64, 32, 0}, 16, 1, "work-groups"},
           Case{"cuda:sm_75", {64, 32, 32 << 10}, 2, 0.125, "shared memory"},
           Case{"cuda:sm_86", {32, 32, 0}, 16, 1.0 / 3, "work-groups"},
           Case{"cuda:sm_89", {32, 32, 0}, 24, 0.5, "work-groups"},
           Case{"cuda:sm_89", {1, 32, 0}, 24, 0.5, "work-groups"},  // a warp is allocated whole
           Case{"cuda:sm_80", {64, 32, 200 << 10}, 0, 0, "shared memory"},
       }) {
    const auto occupancy = OccupancyOf(c.demand, *StoredDevice(c.target));
    ASSERT_TRUE(occupancy.has_value()) << c.target;
    EXPECT_EQ(occupancy->groups, c.groups) << c.target << " " << c.demand.registers;
    EXPECT_DOUBLE_EQ(occupancy->share, c.share) << c.target << " " << c.demand.registers;
    EXPECT_EQ(occupancy->limit, c.limit) << c.target << " " << c.demand.registers;
  }
}

TEST(Occupancy, ADeviceWithoutLimitsHasNone) { EXPECT_FALSE(OccupancyOf({64, 32, 0}, DeviceModel()).has_value()); }

}  // namespace
}  // namespace fusion
