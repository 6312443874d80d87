#include "server/scheduler/device_rates.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DeviceRates, DifferBeyondAFactor) {
  DeviceModel one;
  one.fma_f32_flops_per_s = 100e9;
  one.memory = {{"L1", 32 << 10, 200e9}, {"DRAM", 0, 20e9}};
  DeviceModel other = one;
  EXPECT_EQ(RatesThatDiffer(one, other), "");
  other.fma_f32_flops_per_s = 190e9, other.memory[1].bandwidth_bytes_per_s = 11e9;
  EXPECT_EQ(RatesThatDiffer(one, other), "") << "one of them is busy";
  other.memory[1].bandwidth_bytes_per_s = 5e9;
  EXPECT_EQ(RatesThatDiffer(one, other), "20 instead of 5 GB/s of DRAM");
  EXPECT_EQ(RatesThatDiffer(other, one), "5 instead of 20 GB/s of DRAM");
  other.fma_f32_flops_per_s = 201e9;
  EXPECT_EQ(RatesThatDiffer(one, other), "100 instead of 201 GFLOP/s of a core, 20 instead of 5 GB/s of DRAM");
  other.memory.clear();
  other.fma_f32_flops_per_s = 0;
  EXPECT_EQ(RatesThatDiffer(one, other), "") << "what is not known is not compared";
}

}  // namespace
}  // namespace fusion
