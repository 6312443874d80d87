#include "compiler/cost/stored_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/cost/stored_device_texts.h"
#include "compiler/cost/target.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Target, IsAKindOrAnArchitectureOfIt) {
  DeviceModel device;
  device.kind = "cuda";
  device.isa = "sm_90";
  EXPECT_TRUE(ParseTarget("cuda").IsFor(device));
  EXPECT_TRUE(ParseTarget("cuda:sm_90").IsFor(device));
  EXPECT_FALSE(ParseTarget("cuda:sm_80").IsFor(device));
  EXPECT_FALSE(ParseTarget("cpu").IsFor(device));
}

TEST(StoredDevices, EachIsAModelWithItsSource) {
  for (const std::string& text : StoredDeviceTexts()) {
    const auto device = DeviceModelFromJson(text);
    ASSERT_TRUE(device.ok()) << device.status() << text;
    EXPECT_THAT(text, HasSubstr("\"source\""));
    EXPECT_EQ(device->memory.size(), 3u) << device->name;
    EXPECT_TRUE(device->unit_limits.Known()) << device->name;
    EXPECT_EQ(device->unit_limits.registers, 65536) << device->name;
    EXPECT_GE(device->unit_limits.work_groups * device->parallel_units, device->persistent_groups) << device->name;
    // The bounds lie far from a processor's figures and near a GPU's, so they catch a wrong unit.
    const double flops = device->fma_f32_flops_per_s * device->parallel_units;
    EXPECT_GT(flops, 5e12) << device->name;
    EXPECT_LT(flops, 2e14) << device->name;
    const double bytes = device->memory.back().bandwidth_bytes_per_s * device->parallel_units;
    EXPECT_GT(bytes, 2e11) << device->name;
    EXPECT_LT(bytes, 1e13) << device->name;
  }
}

TEST(StoredDevices, AreFoundByTarget) {
  for (const char* architecture : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"}) {
    const auto device = StoredDevice(std::string("cuda:") + architecture);
    ASSERT_TRUE(device.ok()) << device.status();
    EXPECT_EQ(device->kind, "cuda");
    EXPECT_EQ(device->isa, architecture);
    EXPECT_EQ(device->march, architecture);
  }
  for (const char* other : {"cuda:sm_70", "cuda", "cuda:", "abacus"}) {
    const absl::Status status = StoredDevice(other).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << other;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cuda:sm_80, ")) << other;
  }
}

}  // namespace
}  // namespace fusion
