#include "compiler/cost/typical_core.h"

#include <gtest/gtest.h>

#include <vector>

namespace fusion {
namespace {

TEST(TypicalCore, TypicalRatesFollowFromTheFingerprint) {
  DeviceModel a;
  a.memory = {{"L1", 32 << 10, 2e11, false}, {"DRAM", 0, 1e10, true}};
  DeviceModel b = a;
  b.fma_f32_flops_per_s *= 1.1;
  b.memory[1].bandwidth_bytes_per_s *= 0.8;
  b.launch_s *= 2;
  b.ports.step_cycles *= 2;
  b.lines_in_flight += 1;
  b.fewer_threads = {{1, 0}, {2, 1e-6}};
  ASSERT_EQ(a.Fingerprint(), b.Fingerprint());
  EXPECT_EQ(DeviceModelToJson(WithTypicalRates(a)), DeviceModelToJson(WithTypicalRates(b)));
  EXPECT_EQ(WithTypicalRates(b).BarrierSeconds(1), DeviceModel().barrier_s);
}

// Rates of the levels, the nearest first.
std::vector<double> Rates(const DeviceModel& device) {
  std::vector<double> rates;
  for (const MemoryLevel& level : device.memory) rates.push_back(level.bandwidth_bytes_per_s);
  return rates;
}

TEST(TypicalCore, ACpuOfAnyNumberOfCachesHasItsRates) {
  DeviceModel cpu = TypicalCore();
  EXPECT_EQ(Rates(WithTypicalRates(cpu)), Rates(cpu)) << "the offline plan's own device";
  const MemoryLevel l1 = cpu.memory[0], l2 = cpu.memory[1], l3 = cpu.memory[2], dram = cpu.memory[3];
  cpu.memory = {l1, l2, {"DRAM", 0, 1, true}};
  EXPECT_EQ(Rates(WithTypicalRates(cpu)), Rates({.memory = {l1, l2, dram}}));
  cpu.memory = {l1, l2, l3, {"L4", 1 << 30, 1, true}, {"DRAM", 0, 1, true}};
  EXPECT_EQ(Rates(WithTypicalRates(cpu)), Rates({.memory = {l1, l2, l3, l3, dram}}));
}

TEST(TypicalCore, AnotherDeviceComputesByItsLanes) {
  DeviceModel gpu;
  gpu.kind = "cuda";
  gpu.vector_bytes = 128;
  gpu.memory = {{"L2", 32 << 20, 1, true}, {"DRAM", 0, 1, true}};
  const DeviceModel typical = WithTypicalRates(gpu);
  EXPECT_DOUBLE_EQ(typical.fma_f32_flops_per_s, 32 * 1e10);
  EXPECT_GT(typical.memory[0].bandwidth_bytes_per_s, typical.memory[1].bandwidth_bytes_per_s);
}

}  // namespace
}  // namespace fusion
