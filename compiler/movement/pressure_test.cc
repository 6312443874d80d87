#include "compiler/movement/pressure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_fusion_block.h"

namespace fusion::movement {
namespace {

using ::testing::HasSubstr;

DeviceModel Core(int registers) {
  DeviceModel device;
  device.vector_registers = registers;
  device.memory = {{"L1", 32 << 10, 2.2e11, false}, {"L2", 1 << 20, 7e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

Kernel Scheduled(const std::string& text, const DeviceModel& device) {
  te::Program program = te::Parse(text).value();
  te::Program staged = FormStages(std::move(program)).value();
  ScheduledFusionBlock scheduled = ScheduleFusionBlock(staged, {}, device).value();
  return scheduled.kernel;
}

// One expression over 4096 elements of %0.
Kernel Map(const std::string& body, const DeviceModel& device) {
  return Scheduled(absl::StrCat("te p(%0: f32[4096]) {\n  %1[i0<4096]: f32 = ", body, "\n  return %1\n}"), device);
}

// The map abs(%0) with another body, in which n values are needed twice: in their sum and after it.
Kernel AllAtOnce(int n, const DeviceModel& device) {
  Kernel kernel = Map("abs(%0[i0])", device);
  std::vector<te::Scalar>& body = kernel.phases.back().steps.back().body;
  const te::Scalar load = body[0]->args[0];
  std::vector<te::Scalar> values;
  te::Scalar sum = te::Imm(DType::kF32, 0.5), product = te::Imm(DType::kF32, 2);
  for (int i = 1; i <= n; ++i) {
    values.push_back(te::Max(load, te::Imm(DType::kF32, i)));
    sum = sum + values.back();
  }
  for (const te::Scalar& value : values) product = product * (value - sum);
  body = {product};
  return kernel;
}

TEST(Pressure, ChainsAndTreesNeedFewRegisters) {
  const DeviceModel device = Core(16);
  std::string chain = "%0[i0]";
  for (int i = 0; i < 100; ++i) chain = absl::StrCat("add(abs(", chain, "), 1.0)");
  const Pressure pressure = EstimatePressure(Map(chain, device), device, 1);
  EXPECT_LE(pressure.registers, 2);
  EXPECT_EQ(pressure.spill_ns, 0);
  EXPECT_TRUE(CheckPressure(Map(chain, device), device, 1).ok());
}

TEST(Pressure, MatrixProductsFitTheirRegisters) {
  for (int registers : {16, 32}) {
    const DeviceModel device = Core(registers);
    const Kernel kernel = Scheduled(R"(te p(%0: f32[128, 768], %1: f32[768, 768] const, %2: f32[768] const) {
  %3[i0<128, i1<768]: f32 = sum.f32(i2<768) mul(%0[i0, i2], %1[i2, i1]) then (max(0.0, add(acc0, %2[i1])))
  return %3
})",
                                    device);
    const Pressure pressure = EstimatePressure(kernel, device, 1);
    EXPECT_GT(pressure.registers, registers / 2);
    EXPECT_EQ(pressure.spill_ns, 0) << pressure.registers;
    EXPECT_TRUE(CheckPressure(kernel, device, 1).ok());
  }
}

TEST(Pressure, SpillsAreRefusedWhereTheyCostMoreThanTheRest) {
  const DeviceModel enough = Core(32);
  EXPECT_EQ(EstimatePressure(AllAtOnce(8, enough), enough, 1).spill_ns, 0);
  EXPECT_TRUE(CheckPressure(AllAtOnce(8, enough), enough, 1).ok());
  DeviceModel device = Core(2);
  const Kernel kernel = AllAtOnce(8, device);
  const Pressure pressure = EstimatePressure(kernel, device, 1);
  EXPECT_GE(pressure.registers, 8);
  // Every element of f32 is stored and loaded once for each value past the second.
  EXPECT_NEAR(pressure.spill_ns, 1e9 * 4096 * (pressure.registers - 2) * 2 * 4 / 2.2e11, 1);
  // Arithmetic still takes longer than spilling; on a device with faster arithmetic and memory it does not.
  EXPECT_TRUE(CheckPressure(kernel, device, 1).ok());
  device.fma_f32_flops_per_s = 1e14;
  device.memory.back().bandwidth_bytes_per_s = 1e13;
  EXPECT_THAT(CheckPressure(kernel, device, 1).message(), HasSubstr("values in 2 registers; spilling would take"));
}

TEST(Pressure, CodeThatLeavesTheCacheIsRefused) {
  const DeviceModel device = Core(32);
  std::string chain = "%0[i0]";
  for (int i = 0; i < 500; ++i) chain = absl::StrCat("exp(", chain, ")");
  EXPECT_THAT(CheckPressure(Map(chain, device), device, 1).message(),
              HasSubstr("KiB and exceeds the instruction cache of 32 KiB"));
  DeviceModel larger = device;
  larger.memory.front().size_bytes = 256 << 10;
  EXPECT_TRUE(CheckPressure(Map(chain, larger), larger, 1).ok());
}

}  // namespace
}  // namespace fusion::movement
