#include "compiler/cost/device_model.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(DeviceModelTest, RoundTripsThroughJson) {
  DeviceModel model;
  model.name = "a \"quoted\" name";
  model.vector_registers = 16;
  model.matrix_products = {{"f16", 16, 8, 16, 32, 1e12}, {"f16", 64, 64, 16, 128, 1e12, /*from_memory=*/true}};
  model.async_copies = true;
  model.memory = {{"L1", 49152, 2.2e11, false}, {"DRAM", 0, 1e10, true}};
  model.line_bytes = 128;
  model.lines_in_flight = 24;
  model.ports.step_cycles = 4;
  model.ports.strided_broadcast = 0.75;
  const absl::StatusOr<DeviceModel> again = DeviceModelFromJson(DeviceModelToJson(model));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(DeviceModelToJson(*again), DeviceModelToJson(model));
  EXPECT_EQ(again->Fingerprint(), model.Fingerprint());
  EXPECT_EQ(again->line_bytes, 128);
  EXPECT_EQ(again->lines_in_flight, 24);
  EXPECT_EQ(again->ports.step_cycles, 4);
  EXPECT_EQ(again->ports.strided_broadcast, 0.75);
}

TEST(DeviceModelTest, FingerprintIgnoresMeasuredRates) {
  DeviceModel a, b;
  b.fma_f32_flops_per_s *= 2;
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());
  b.lines_in_flight *= 2;
  b.ports.pack_cycles *= 2;
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());
  b.host_isa = "neon";
  EXPECT_EQ(a.Fingerprint(), b.Fingerprint());  // on a cpu, the device is its own host
  a.kind = b.kind = "opencl";
  EXPECT_NE(a.Fingerprint(), b.Fingerprint());
  b = a;
  b.isa = "avx2";
  EXPECT_NE(a.Fingerprint(), b.Fingerprint());
  b = a;
  b.line_bytes = 128;
  EXPECT_NE(a.Fingerprint(), b.Fingerprint());
}

TEST(DeviceModelTest, RefusesNonsense) {
  EXPECT_FALSE(DeviceModelFromJson("").ok());
  EXPECT_FALSE(DeviceModelFromJson("[]").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"vector_bytes": 7})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"name": 3})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"host_isa": "mips"})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"matrix_products": [{"operands": "f16", "rows": 16}]})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"line_bytes": 48})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"lines_in_flight": 0})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"ports": {"fmas_per_cycle": 0}})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"ports": {"fmas_per_cycle": "two"}})").ok());
  EXPECT_FALSE(DeviceModelFromJson(R"({"ports": 2})").ok());
}

TEST(DeviceModel, OnlyACoresOwnCachesAreReadFasterThanCopied) {
  DeviceModel device;
  device.memory = {{"L2", 1 << 20, 7e10, false}, {"L3", 32 << 20, 2.4e10, true}, {"DRAM", 0, 1e10, true}};
  EXPECT_DOUBLE_EQ(device.CopyBandwidth(1 << 19), 7e10);
  EXPECT_DOUBLE_EQ(device.ReadBandwidth(1 << 19), 1.4e11);
  EXPECT_DOUBLE_EQ(device.CopyBandwidth(1 << 20), 2.4e10) << "more than three quarters of the L2";
  EXPECT_DOUBLE_EQ(device.ReadBandwidth(1 << 20), 2.4e10);
  EXPECT_DOUBLE_EQ(device.ReadBandwidth(1e9), 1e10);
}

TEST(DeviceModel, BarriersOfFewerThreads) {
  DeviceModel model;
  model.parallel_units = 8;
  model.barrier_s = 5e-6;
  EXPECT_EQ(model.BarrierSeconds(1), 5e-6);  // a model of an older worker has one figure
  const std::string without = model.Fingerprint();
  model.fewer_threads = {{1, 0}, {2, 1e-6}, {4, 2e-6}};
  const auto again = DeviceModelFromJson(DeviceModelToJson(model));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->Fingerprint(), without);
  for (const DeviceModel& m : {model, *again, DeviceModel(model).WithRatesOf(*again)}) {
    EXPECT_EQ(m.BarrierSeconds(1), 0);
    EXPECT_EQ(m.BarrierSeconds(2), 1e-6);
    EXPECT_EQ(m.BarrierSeconds(3), 2e-6);
    EXPECT_EQ(m.BarrierSeconds(5), 5e-6);
    EXPECT_EQ(m.BarrierSeconds(8), 5e-6);
    EXPECT_EQ(m.BarrierSeconds(16), 5e-6);
  }
  model.parallel_units = 2;  // of which `barrier_s` is the price
  EXPECT_EQ(model.BarrierSeconds(2), 5e-6);
  model.fewer_threads = {{2, 1e-6}, {2, 2e-6}};
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
  model.fewer_threads = {{1, -1e-6}};
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
}

TEST(DeviceModel, Libraries) {
  for (std::string DeviceModel::*library : {&DeviceModel::product_library, &DeviceModel::convolution_library}) {
    DeviceModel model;
    model.kind = "cuda";
    const std::string without = model.Fingerprint();
    model.*library = "library 13.0.0";
    EXPECT_NE(model.Fingerprint(), without);  // measurements with another version do not apply
    const auto again = DeviceModelFromJson(DeviceModelToJson(model));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again).*library, "library 13.0.0");
    EXPECT_EQ(again->Fingerprint(), model.Fingerprint());
    model.kind = "opencl";
    EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
  }
}

TEST(DeviceModel, LimitsOfAUnit) {
  DeviceModel model;
  EXPECT_FALSE(model.unit_limits.Known());
  model.kind = "cuda";
  model.unit_limits = {65536, 167936, 1024, 2048, 32};
  const auto again = DeviceModelFromJson(DeviceModelToJson(model));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(DeviceModelToJson(*again), DeviceModelToJson(model));
  EXPECT_EQ(again->unit_limits.work_groups, 32);
  model.unit_limits.work_items = 0;  // all or none
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
}

TEST(DeviceModel, PersistentKernels) {
  DeviceModel model;
  model.kind = "opencl";
  const std::string without = model.Fingerprint();
  model.persistent_groups = 2;
  EXPECT_NE(model.Fingerprint(), without);
  const auto again = DeviceModelFromJson(DeviceModelToJson(model));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->persistent_groups, 2);
  model.kind = "cuda";
  EXPECT_TRUE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
  model.kind = "cpu";
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
  model.kind = "opencl";
  model.work_group_size = 32;
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
  model.work_group_size = 1;
  model.persistent_groups = -1;
  EXPECT_FALSE(DeviceModelFromJson(DeviceModelToJson(model)).ok());
}

}  // namespace
}  // namespace fusion
