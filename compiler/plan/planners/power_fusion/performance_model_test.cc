#include "compiler/plan/planners/power_fusion/performance_model.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace fusion::power_fusion {
namespace {

DeviceModel Device(int units) {
  DeviceModel device;
  device.parallel_units = units;
  device.fma_f32_flops_per_s = 1e9;
  device.launch_s = 1e-6;
  device.barrier_s = 1e-6;
  device.write_allocate = false;
  device.memory = {{"L1", 1 << 10, 1e11, false}, {"DRAM", 0, 1e9, true}};
  return device;
}

int64_t Elements(double bytes) { return static_cast<int64_t>(bytes) / 4; }
// A slice of whole lines.
Pattern Whole(double bytes) { return {1, std::max<int64_t>(16, Elements(bytes)), 0, {}}; }

// One elementwise gOperator between a load and a store of a tensor.
Gir OneOperator(int64_t units, double bytes, double operations) {
  Gir gir;
  gir.units = units;
  const auto add = [&](GKind kind, int from, Scope memory) {
    GOperator op;
    op.kind = kind;
    op.reads = {from};
    const int to = op.writes = gir.Add(
        {kind == GKind::kMove && memory == Scope::kLane ? 0 : 1, memory, Whole(bytes), {Elements(bytes)}, bytes});
    if (kind == GKind::kElementwise) op.operations = operations;
    gir.Add(std::move(op));
    return to;
  };
  const int loaded =
      add(GKind::kMove, gir.Add({0, Scope::kDevice, Whole(bytes), {Elements(bytes)}, bytes}), Scope::kLane);
  add(GKind::kMove, add(GKind::kElementwise, loaded, Scope::kLane), Scope::kDevice);
  return gir;
}

TEST(PerformanceModel, TakesTheLongerOfMovingAndComputing) {
  const DeviceModel device = Device(1);
  const double launch = 1e9 * device.LaunchSeconds(1);
  EXPECT_NEAR(EstimateNs(OneOperator(16, 1e6, 1), device), launch + 2e6, 1) << "two megabytes at 1 GB/s";
  EXPECT_NEAR(EstimateNs(OneOperator(16, 1000, 1e6), device), launch + 1e6, 1) << "a million operations at 1 GHz";
}

TEST(PerformanceModel, UnitsWorkInWaves) {
  const DeviceModel device = Device(4);
  const double launch = 1e9 * device.LaunchSeconds(4);
  EXPECT_NEAR(EstimateNs(OneOperator(8, 8, 8e6), device), launch + 2e6, 1);
  EXPECT_NEAR(EstimateNs(OneOperator(5, 8, 5e6), device), launch + 2e6, 1) << "one unit has a second turn";
  EXPECT_NEAR(EstimateNs(OneOperator(1, 8, 1e6), device), launch + 1e6, 1) << "others are idle";
}

TEST(PerformanceModel, BarriersCount) {
  Gir gir = OneOperator(4, 8, 0);
  const DeviceModel device = Device(4);
  const double before = EstimateNs(gir, device);
  GOperator sync;
  sync.kind = GKind::kSync;
  sync.reads = {gir.operators.back().writes};
  sync.writes = gir.Add({1, Scope::kDevice, Whole(8), {2}, 8});
  GOperator load;
  load.reads = {sync.writes};
  load.writes = gir.Add({1, Scope::kLane, Whole(8), {2}, 8});
  gir.Add(std::move(sync));
  gir.Add(std::move(load));
  EXPECT_GE(EstimateNs(gir, device), before + 1e9 * device.BarrierSeconds(4));
}

}  // namespace
}  // namespace fusion::power_fusion
