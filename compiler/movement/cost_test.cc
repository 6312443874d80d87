// Compares the model with times measured on one 2.5 GHz AVX-512 core (160 GFLOP/s; L2 1 MB at 70 GB/s, L3 at 24, DRAM
// at 10).
#include "compiler/movement/cost.h"

#include <gtest/gtest.h>

#include "compiler/cost/stored_devices.h"
#include "compiler/cost/traffic_time.h"
#include "compiler/movement/pressure.h"
#include "compiler/movement/testing/look_kernel.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_fusion_block.h"

namespace fusion::movement {
namespace {

DeviceModel MeasuredCore() {
  DeviceModel device;
  device.fma_f32_flops_per_s = 1.6e11;
  device.memory = {{"L1", 32 << 10, 2.2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 2.4e10, true},
                   {"DRAM", 0, 1e10, true}};
  return device;
}

KernelCost CostOf(const std::string& text, const std::map<te::TensorId, Layout>& layouts = {}) {
  te::Program program = te::Parse(text).value();
  te::Program staged = FormStages(std::move(program)).value();
  ScheduledFusionBlock scheduled = ScheduleFusionBlock(staged, layouts, MeasuredCore()).value();
  return EstimateCost(scheduled.kernel, MeasuredCore(), 1);
}

void ExpectWithin2(double estimate_ns, double measured_us) {
  EXPECT_GT(estimate_ns, 500 * measured_us);
  EXPECT_LT(estimate_ns, 2000 * measured_us);
}

// A step that runs for infinities alone costs neither time nor bytes nor registers.
TEST(EstimateCost, RareStepsHaveNoPrice) {
  const Kernel kernel = testing::LookingSums();
  Kernel without = kernel;
  without.phases[0].steps.pop_back();
  const DeviceModel device = MeasuredCore();
  const KernelCost cost = EstimateCost(kernel, device, 1), wanted = EstimateCost(without, device, 1);
  EXPECT_EQ(cost.latency_ns, wanted.latency_ns);
  EXPECT_EQ(cost.compulsory_bytes, wanted.compulsory_bytes);
  EXPECT_EQ(cost.fma, wanted.fma);
  EXPECT_EQ(BytesByLevel(kernel, device), BytesByLevel(without, device));
  EXPECT_EQ(EstimatePressure(kernel, device, 1).registers, EstimatePressure(without, device, 1).registers);
  Kernel both = kernel;
  both.phases[0].steps[2].runs_if.reset();
  EXPECT_GT(EstimateCost(both, device, 1).latency_ns, wanted.latency_ns);
}

TEST(EstimateCost, MatrixProduct) {
  const KernelCost cost = CostOf(R"(te p(%0: f32[128, 768], %1: f32[768, 768] const, %2: f32[768] const) {
  %3[i0<128, i1<768]: f32 = sum.f32(i2<768) mul(%0[i0, i2], %1[i2, i1]) then (add(acc0, %2[i1]))
  return %3
})");
  EXPECT_NEAR(cost.fma, 128.0 * 768 * 768, 0.02 * cost.fma);
  ExpectWithin2(cost.latency_ns, 999);
}

// 197 is no multiple of a task's rows, so the last task has fewer.
TEST(EstimateCost, ShortTasksCostLess) {
  const auto fma = [](int64_t rows) {
    const std::string m = std::to_string(rows);
    return CostOf("te p(%0: f32[" + m + R"(, 768], %1: f32[768, 2304] const) {
  %2[i0<)" + m + R"(, i1<2304]: f32 = sum.f32(i2<768) mul(%0[i0, i2], %1[i2, i1])
  return %2
})")
        .fma;
  };
  for (const int64_t rows : {197, 171, 131}) {
    EXPECT_NEAR(fma(rows), static_cast<double>(rows) * 768 * 2304, 1) << rows << " rows";
  }
}

TEST(EstimateCost, PointwiseConvolutionWithResidual) {
  const Layout blocked{1, 16};
  const KernelCost cost =
      CostOf(R"(te p(%0: f32[1, 64, 56, 56], %1: f32[256, 64, 1, 1] const, %2: f32[1, 256, 56, 56]) {
  %3[i0<1, i1<256, i2<56, i3<56]: f32 = sum.f32(i4<64) mul(%0[0, i4, i2, i3], %1[i1, i4, 0, 0]) then (max(0.0, add(acc0, %2[0, i1, i2, i3])))
  return %3
})",
             {{0, blocked}, {2, blocked}, {3, blocked}});
  EXPECT_NEAR(cost.compulsory_bytes, 10.4e6, 0.2e6);
  ExpectWithin2(cost.latency_ns, 970);
}

TEST(EstimateCost, Depthwise) {
  const Layout blocked{1, 16};
  const KernelCost cost = CostOf(R"(te p(%0: f32[1, 144, 56, 56], %1: f32[144, 1, 3, 3] const) {
  %2[i0<1, i1<144, i2<56, i3<56]: f32 = sum.f32(i4<3, i5<3) mul(%0[0, i1, i2 + i4 - 1, i3 + i5 - 1]?0.0, %1[i1, 0, i4, i5])
  return %2
})",
                                 {{0, blocked}, {2, blocked}});
  ExpectWithin2(cost.latency_ns, 146);
}

TEST(EstimateCost, MoreThreadsAreNeverSlower) {
  const std::string text = R"(te p(%0: f32[512, 768]) {
  %1[i0<512, i1<768]: f32 = exp(%0[i0, i1])
  return %1
})";
  absl::StatusOr<ScheduledFusionBlock> scheduled =
      ScheduleFusionBlock(*FormStages(*te::Parse(text)), {}, MeasuredCore());
  DeviceModel device = MeasuredCore();
  device.parallel_units = 4;
  EXPECT_LE(EstimateCost(scheduled->kernel, device, 4).latency_ns,
            EstimateCost(scheduled->kernel, device, 1).latency_ns);
  // Threads beyond the device's own do not help.
  EXPECT_EQ(EstimateCost(scheduled->kernel, device, 64).latency_ns,
            EstimateCost(scheduled->kernel, device, 4).latency_ns);
}

TEST(EstimateCost, SpecialFunctionsCost) {
  auto text = [](const char* op) {
    return std::string("te p(%0: f32[64, 64]) {\n  %1[i0<64, i1<64]: f32 = ") + op + "(%0[i0, i1])\n  return %1\n}";
  };
  EXPECT_GT(CostOf(text("erf")).latency_ns, CostOf(text("neg")).latency_ns);
}

TEST(EstimateCost, SpecialFunctionsCostWhatTheDeviceSays) {
  const auto compute = [](const std::string& op, double ratio) {
    const std::string text =
        "te p(%0: f32[64, 64]) {\n  %1[i0<64, i1<64]: f32 = " + op + "(%0[i0, i1])\n  return %1\n}";
    DeviceModel device = MeasuredCore();
    device.special_cycles_ratio = ratio;
    const Kernel kernel = ScheduleFusionBlock(FormStages(te::Parse(text).value()).value(), {}, device).value().kernel;
    return EstimateCost(kernel, device, 1);
  };
  const double ratio = DeviceModel().special_cycles_ratio;
  for (const char* op : {"exp", "erf", "tanh", "sin"}) {
    EXPECT_NEAR(compute(op, 2 * ratio).special, 2 * compute(op, ratio).special, 1e-6) << op;
    EXPECT_GT(compute(op, 2 * ratio).compute_ns, 1.4 * compute(op, ratio).compute_ns) << op;
  }
  EXPECT_EQ(compute("neg", 2 * ratio).compute_ns, compute("neg", ratio).compute_ns);
  // The table of operations has the costs at the ratio of a typical device.
  EXPECT_EQ(te::GetOpInfo(te::Op::kExp).cost, ratio);
}

// A work-group of 64 work-items leaves half of a multiprocessor idle, which a second one fills.
TEST(EstimateCost, FewWorkItemsDoNotFillAMultiprocessor) {
  const DeviceModel device = StoredDevice("cuda:sm_80").value();
  const std::string text = "te p(%0: f32[512, 768]) {\n  %1[i0<512, i1<768]: f32 = exp(%0[i0, i1])\n  return %1\n}";
  Kernel kernel = ScheduleFusionBlock(FormStages(te::Parse(text).value()).value(), {}, device).value().kernel;
  const auto compute = [&](int64_t groups) {
    kernel.phases[0].grid = {{kernel.phases[0].grid[0].id, groups}};
    return EstimateCost(kernel, device, device.parallel_units).compute_ns;
  };
  const int64_t units = device.parallel_units;
  EXPECT_NEAR(compute(2 * units), compute(units), 1e-6 * compute(units));
  EXPECT_NEAR(compute(4 * units), 2 * compute(units), 1e-6 * compute(units));
  EXPECT_NEAR(compute(units / 2), compute(units), 1e-6 * compute(units));
  // Scratch that leaves room for one work-group keeps the second out.
  kernel.scratch_bytes = 120 << 10;
  EXPECT_NEAR(compute(2 * units), 2 * compute(units), 1e-6 * compute(units));
}

// Phases that leave units idle fill them together; phases that fill all units take as long as one after the other. The
// launch of the second is saved either way.
TEST(EstimateCost, PhasesBesideEachOtherShareUnitsAndALaunch) {
  const DeviceModel device = StoredDevice("cuda:sm_80").value();
  const std::string text = "te p(%0: f32[512, 768]) {\n  %1[i0<512, i1<768]: f32 = erf(%0[i0, i1])\n  return %1\n}";
  Kernel kernel = ScheduleFusionBlock(FormStages(te::Parse(text).value()).value(), {}, device).value().kernel;
  const int axis = kernel.phases[0].grid[0].id;
  kernel.phases[0].grid = {{axis, device.parallel_units / 4}};
  kernel.phases.push_back(kernel.phases[0]);
  const auto estimate = [&](bool beside) {
    kernel.phases[1].beside = beside;
    return EstimateCost(kernel, device, device.parallel_units);
  };
  EXPECT_NEAR(estimate(true).compute_ns, estimate(false).compute_ns / 2, 1e-6 * estimate(false).compute_ns);
  EXPECT_LE(estimate(true).latency_ns, estimate(false).latency_ns - 1e9 * device.launch_s);
  kernel.phases[1].beside = false;
  EXPECT_EQ(EstimatePhases(kernel, device, device.parallel_units).size(), 2u);
  kernel.phases[1].beside = true;
  EXPECT_EQ(EstimatePhases(kernel, device, device.parallel_units).size(), 1u);
  for (Phase& phase : kernel.phases) phase.grid = {{axis, 8 * device.parallel_units}};
  EXPECT_NEAR(estimate(true).compute_ns, estimate(false).compute_ns, 1e-6 * estimate(false).compute_ns);
}

// A dictionary's embeddings: few of its rows are read, whatever its size.
TEST(EstimateCost, RowsOfALargeTableAreNotTheTable) {
  const auto gather = [](int64_t rows) {
    const std::string n = std::to_string(rows), last = std::to_string(rows - 1);
    return CostOf("te p(%0: f32[" + n + ", 256], %1: i64[128]) {\n  %2[i0<128, i1<256]: f32 = %0[%1[i0]{0.." + last +
                  "}, i1]\n  return %2\n}");
  };
  const double result_bytes = 128 * 256 * 4;
  EXPECT_NEAR(gather(1 << 20).compulsory_bytes, 3 * result_bytes, 0.1 * result_bytes);
  EXPECT_EQ(gather(1 << 20).latency_ns, gather(1 << 19).latency_ns);
  // A table that a cache holds is taken whole.
  EXPECT_NEAR(gather(1 << 10).compulsory_bytes, 1024 * 1024 + 2 * result_bytes, 0.1 * result_bytes);
}

// The rate of memory is that of one unit, of which as many add up as work; a processor's core has most of it.
TEST(EstimateCost, UnitsOfWorkGroupsAddUpTheirRatesOfMemory) {
  DeviceModel device = StoredDevice("cuda:sm_80").value();
  EXPECT_EQ(MemoryUnits(device, 1), 1);
  EXPECT_EQ(MemoryUnits(device, 50), 50);
  EXPECT_EQ(MemoryUnits(device, 1e6), device.parallel_units);
  EXPECT_EQ(HandOverNs(device, 1e9), 1e9 * 1e9 / device.memory.back().bandwidth_bytes_per_s / device.parallel_units);
  EXPECT_EQ(MemoryUnits(MeasuredCore(), 50), 1);
}

}  // namespace
}  // namespace fusion::movement
