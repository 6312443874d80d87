#include "compiler/backends/dsa/dsa_device_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(DsaDeviceModel, DescribesACoreOfEachStoredMachine) {
  for (const std::string& name : dsa::StoredMachineNames()) {
    const auto model = DsaDeviceOf("dsa:" + name);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->kind, "dsa");
    EXPECT_EQ(model->isa, name);
    EXPECT_EQ(model->march, name) << "what the toolchain checks for";
    const auto again = DeviceModelFromJson(DeviceModelToJson(*model));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(again->Fingerprint(), model->Fingerprint());
  }
}

TEST(DsaDeviceModel, Stcp920IsTheDefault) {
  const auto model = DsaDeviceOf("dsa");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->isa, "stcp920");
  EXPECT_EQ(model->parallel_units, 8);
  EXPECT_EQ(model->memory[0].size_bytes, 64 << 10);
  EXPECT_EQ(model->fma_f32_flops_per_s, 2 * 2000 * 1e9);
  EXPECT_DOUBLE_EQ(model->memory.back().bandwidth_bytes_per_s, 136e9 / 4 / 8) << "a core's share of a cluster's share";
}

TEST(DsaDeviceModel, AnotherDescriptionIsAnotherDevice) {
  dsa::Machine machine = *dsa::StoredMachine("stcp920");
  const std::string before = DsaDeviceModel(machine).Fingerprint();
  machine = machine.WithAssumedRates(2);
  EXPECT_NE(DsaDeviceModel(machine).Fingerprint(), before) << "its times are others";
}

TEST(DsaDeviceModel, AnUnknownMachineIsNamed) {
  const auto model = DsaDeviceOf("dsa:abacus");
  EXPECT_EQ(model.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("stcp920"));
}

}  // namespace
}  // namespace fusion
