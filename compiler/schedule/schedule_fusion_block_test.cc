#include "compiler/schedule/schedule_fusion_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "compiler/movement/cost.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::OrFail;
using testing::Schedule;
using testing::Stages;

constexpr char kSoftmax[] = R"(te p(%0: f32[512, 64]) {
  %1[i0<512]: f32 = max.f32(i1<64) %0[i0, i1]
  %2[i2<512, i3<64]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  %3[i4<512]: f32 = sum.f32(i5<64) %2[i4, i5]
  %4[i6<512, i7<64]: f32 = div(%2[i6, i7], %3[i6])
  return %4
})";

TEST(ScheduleFusionBlock, RowsAreStitched) {
  const ScheduledFusionBlock scheduled = Schedule(kSoftmax);
  EXPECT_EQ(scheduled.kernel.phases.size(), 1u) << scheduled.reason;
  ASSERT_EQ(scheduled.kernel.phases.size(), 1u);
  EXPECT_EQ(scheduled.kernel.phases.at(0).tasks(), 512);
  EXPECT_EQ(scheduled.kernel.phases.at(0).steps.size(), 4u) << movement::Print(scheduled.kernel);
  // The intermediates hold a row each, not the tensor.
  EXPECT_LE(scheduled.kernel.scratch_bytes, 4096);
  EXPECT_EQ(scheduled.kernel.num_args(), 2);
}

TEST(ScheduleFusionBlock, SlicesOfALongProductAreOneStage) {
  const ScheduledFusionBlock scheduled = Schedule(R"(te p(%0: f32[256, 3200], %1: f32[3200, 512] const, %2: f32[512]) {
  %3[i0<256, i1<512]: f32 = sum.f32(i2<3200) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))
  return %3
})");
  EXPECT_EQ(scheduled.kernel.phases.size(), 8u);
  EXPECT_EQ(scheduled.reason, "");  // the product's epilogue may join it
}

TEST(ScheduleFusionBlock, PrintsTheSameEveryTime) {
  const std::string text = movement::Print(Schedule(kSoftmax).kernel);
  EXPECT_EQ(movement::Print(Schedule(kSoftmax).kernel), text);
}

// Tall columns fill vectors as they are, and are one pass. Units share one long row in parts.
TEST(ScheduleFusionBlock, LongPrefixReductionsArePartsWhereUnitsShareThem) {
  const auto phases = [](int64_t rows, int64_t columns, int units) {
    DeviceModel device = Device();
    device.parallel_units = units;
    device.memory.back().bandwidth_bytes_per_s = 1e12;  // arithmetic decides
    const std::string n = std::to_string(rows), c = std::to_string(columns);
    const std::string text = "te p(%0: f32[" + n + ", " + c + "]) {\n  %1[i0<" + n + ", i1<" + c +
                             "]: f32 = sum.f32(i2<" + n + ") if i2 < i0 + 1 then %0[i2, i1] else 0.0\n  return %1\n}";
    return Schedule(text, {}, device).kernel.phases.size();
  };
  EXPECT_EQ(phases(20000, 64, 1), 1u);
  EXPECT_EQ(phases(20000, 64, 4), 1u);
  EXPECT_GT(phases(8000000, 1, 64), 1u);
}

// Sums of the exponentials of four long rows, with a barrier behind the exponentials.
te::Program RowsBehindABarrier() {
  te::Program program = Stages(R"(te p(%0: f32[4, 512], %1: f32[512, 32768] const) {
  %2[i0<4, i1<32768]: f32 = sum.f32(i2<512) mul(%0[i0, i2], %1[i2, i1])
  %3[i3<4]: f32 = sum.f32(i4<32768) %2[i3, i4]
  %4[i5<4, i6<32768]: f32 = div(%2[i5, i6], %3[i5])
  return %4
})");
  for (size_t t = 0; t < program.tes.size(); ++t) program.tes[t].origins = {t == 0 ? 0 : 1};
  return program;
}

// Every form of the program, with what is asked of the product's hand-over.
std::vector<ScheduledFusionBlock> FormsOf(const te::Program& program, bool asked, std::set<std::string> disabled = {}) {
  std::vector<ScheduledFusionBlock> forms;
  for (int form = 0; form < 40; ++form) {
    ScheduleOptions options;
    options.choices = {{"form", form}};
    options.disabled_passes = disabled;
    options.hand_overs = {{program.tes[0].outputs[0], 0, 1, Scope::kBlock, Scope::kDevice, asked}};
    forms.push_back(OrFail(ScheduleFusionBlock(program, {}, Device(), options)));
  }
  return forms;
}

bool HasPartials(const ScheduledFusionBlock& scheduled) {
  const std::vector<movement::Step>& steps = scheduled.kernel.phases.at(0).steps;
  return std::any_of(steps.begin(), steps.end(), [](const movement::Step& step) { return step.label == "partial"; });
}

TEST(ScheduleFusionBlock, AProductsTasksReduceChunksOfRowsWhereABarrierIsAskedFor) {
  const te::Program program = RowsBehindABarrier();
  int with_partials = 0;
  for (const ScheduledFusionBlock& scheduled : FormsOf(program, /*asked=*/true)) {
    if (!HasPartials(scheduled)) continue;
    ++with_partials;
    EXPECT_TRUE(scheduled.within.ok()) << scheduled.within;
    ASSERT_EQ(scheduled.kernel.phases.size(), 2u);
    // The later phase shares out more than the four rows.
    EXPECT_GE(scheduled.kernel.phases[1].tasks(), 2 * Device().parallel_units);
  }
  EXPECT_GT(with_partials, 0);
  for (const ScheduledFusionBlock& scheduled : FormsOf(program, /*asked=*/false)) EXPECT_FALSE(HasPartials(scheduled));
  for (const ScheduledFusionBlock& scheduled : FormsOf(program, /*asked=*/true, {"split-reductions"})) {
    EXPECT_FALSE(HasPartials(scheduled));
  }
}

// Four rows are too few tasks for eight cores: each tile of a row combines the chunks again.
TEST(ScheduleFusionBlock, FewRowsAreCombinedByTilesOfThem) {
  DeviceModel device = Device();
  device.parallel_units = 8;
  const te::Program program = RowsBehindABarrier();
  bool met = false;
  for (int form = 0; form < 40; ++form) {
    ScheduleOptions options;
    options.choices = {{"form", form}};
    options.hand_overs = {{program.tes[0].outputs[0], 0, 1, Scope::kBlock, Scope::kDevice, true}};
    const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, device, options));
    if (!HasPartials(scheduled)) continue;
    met = true;
    EXPECT_GE(scheduled.kernel.phases.back().tasks(), 16) << movement::Print(scheduled.kernel);
  }
  EXPECT_TRUE(met);
}

// The rows of a softmax are fewer than the tasks that forty units want. Its stages share tasks only where the plan asks
// for that, and then one hand-over that is asked for is enough for all stages of the task.
TEST(ScheduleFusionBlock, FewTasksOnlyWhereAPlanAsksForTheScratchOfATask) {
  te::Program program = Stages(R"(te p(%0: f32[48, 4096]) {
  %1[i0<48]: f32 = max.f32(i1<4096) %0[i0, i1]
  %2[i2<48, i3<4096]: f32 = exp(sub(%0[i2, i3], %1[i2]))
  %3[i4<48]: f32 = sum.f32(i5<4096) %2[i4, i5]
  %4[i6<48, i7<4096]: f32 = div(%2[i6, i7], %3[i6])
  return %4
})");
  for (size_t t = 0; t < program.tes.size(); ++t) program.tes[t].origins = {static_cast<int>(t)};
  const te::TensorId maximum = program.tes[0].outputs[0];
  const DeviceModel device = testing::GroupDevice();
  ASSERT_GT(2 * device.parallel_units, 48);
  for (const auto& [asked, furthest] : std::vector<std::pair<bool, Scope>>{
           {true, Scope::kBlock}, {true, Scope::kWarp}, {true, Scope::kDevice}, {false, Scope::kBlock}}) {
    SCOPED_TRACE(::testing::Message() << asked << ", " << ScopeName(furthest));
    ScheduleOptions options;
    options.hand_overs = {{maximum, 0, 1, Scope::kLane, furthest, asked}};
    const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(program, {}, device, options));
    if (asked && furthest <= Scope::kBlock) {
      ASSERT_EQ(scheduled.kernel.phases.size(), 1u) << scheduled.reason;
      EXPECT_EQ(scheduled.kernel.phases[0].tasks(), 48);
      EXPECT_TRUE(scheduled.within.ok()) << scheduled.within;
    } else {
      EXPECT_GT(scheduled.kernel.phases.size(), 1u);
      // Where the plan asks for a barrier, chunks of the rows may be reduced in front of it.
      EXPECT_EQ(HasPartials(scheduled), asked) << movement::Print(scheduled.kernel);
      if (!asked) EXPECT_NE(scheduled.reason.find("only 48 independent tasks"), std::string::npos) << scheduled.reason;
    }
  }
}

// A plan may ask for a task's scratch where only one task is left; it gets that, and the price of idle units with it.
TEST(ScheduleFusionBlock, ASingleTaskThatAPlanAsksForIsPriced) {
  te::Program program = Stages(R"(te p(%0: f32[512, 1024]) {
  %1[]: f32 = sum.f32(i0<512, i1<1024) %0[i0, i1]
  %2[i2<512, i3<1024]: f32 = div(%0[i2, i3], %1[])
  return %2
})");
  for (size_t t = 0; t < program.tes.size(); ++t) program.tes[t].origins = {static_cast<int>(t)};
  const DeviceModel device = testing::GroupDevice();
  const auto scheduled = [&](bool asked) {
    ScheduleOptions options;
    options.hand_overs = {{program.tes[0].outputs[0], 0, 1, Scope::kLane, Scope::kBlock, asked}};
    return OrFail(ScheduleFusionBlock(program, {}, device, options));
  };
  const ScheduledFusionBlock one = scheduled(true), phases = scheduled(false);
  ASSERT_EQ(one.kernel.phases.size(), 1u) << one.reason;
  EXPECT_EQ(one.kernel.phases[0].tasks(), 1);
  const auto price = [&](const ScheduledFusionBlock& of) {
    return movement::EstimateCost(of.kernel, device, device.parallel_units).latency_ns;
  };
  EXPECT_GT(price(one), price(phases));
}

// A sum of everything, then a map over everything. Both are bound by memory, so only the cost between phases differs.
TEST(ScheduleFusionBlock, PersistentWhereABarrierCostsLessThanALaunch) {
  DeviceModel device = Device();
  device.kind = "opencl";
  device.parallel_units = 2;
  device.launch_s = 5e-6;
  const te::Program program = Stages(R"(te p(%0: f32[1, 200000]) {
  %1[i0<1]: f32 = sum.f32(i1<200000) %0[i0, i1]
  %2[i2<1, i3<200000]: f32 = div(%0[i2, i3], %1[i2])
  return %2
})");
  for (const auto& [groups, barrier_s, stay] :
       std::vector<std::tuple<int, double, bool>>{{2, 2e-7, true}, {2, 1e-4, false}, {0, 2e-7, false}}) {
    device.persistent_groups = groups;
    device.barrier_s = barrier_s;
    const absl::StatusOr<ScheduledFusionBlock> scheduled = ScheduleFusionBlock(program, {}, device);
    ASSERT_TRUE(scheduled.ok()) << scheduled.status();
    EXPECT_GT(scheduled->kernel.phases.size(), 1u);
    EXPECT_EQ(scheduled->kernel.persistent, stay) << groups << " groups, " << barrier_s;
  }
}

}  // namespace
}  // namespace fusion
