#include "compiler/launch/join_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/backends/backend.h"
#include "compiler/cost/stored_devices.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/parse.h"
#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two kernels, of which the second reads what the first one writes and what moves with the loop.
struct Body {
  Body() {
    device = *StoredDevice("cuda:sm_80");
    device.launch_s = 4e-6, device.barrier_s = 1e-6;
    moving = g.In({1, 256});
    carried = g.In({1, 256});
    product = g.Op("MatMul", {carried, g.Weight({256, 256})});
    next = g.Op("Tanh", {g.Op("Add", {product, moving})});
    g.Out(next);
    const auto kernel = [&](std::vector<ecg::NodeId> nodes) {
      FusionBlock block;
      block.nodes = std::move(nodes);
      return *MakeFusionKernel(g.graph(), block, LiveOutOf(g.graph(), block), {}, device, {});
    };
    kernels = {kernel({0}), kernel({1, 2})};
    memory.memories = {{1024, 2, 0}};
    memory.places[carried] = {0, ecg::kNone, {}, 0, 1, 7};
    memory.places[next] = {0, ecg::kNone, {}, 1, 1, 7};
    memory.places[moving] = {-1, moving, {1024, 100, 0}, 0, 1, 7};
  }
  absl::StatusOr<FusionKernel> Join(int64_t trips) const {
    return JoinKernels({{{&kernels[0], &kernels[1]}, 7, trips}}, memory, device);
  }
  G g;
  DeviceModel device;
  V moving, carried, product, next;
  std::vector<FusionKernel> kernels;
  LoopMemory memory;
};

TEST(JoinKernels, OfALoopRepeatInOneKernel) {
  const Body body;
  const absl::StatusOr<FusionKernel> joined = body.Join(100);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const movement::Kernel& kernel = joined->kernel;
  EXPECT_TRUE(kernel.persistent);
  ASSERT_EQ(kernel.phase_loops.size(), 1u);
  EXPECT_EQ(kernel.phase_loops[0].end, kernel.phases.size());
  EXPECT_EQ(kernel.phase_loops[0].trips, 100);
  EXPECT_EQ(joined->flops, 100 * (body.kernels[0].flops + body.kernels[1].flops));
  // A value is one argument; what moves with the loop says so, and what one kernel hands to the other stays.
  std::vector<V> values;
  for (size_t a = 0; a < joined->args.size(); ++a) {
    if (joined->args[a].kind != KernelArg::Kind::kValue) continue;
    values.push_back(joined->args[a].value);
    EXPECT_EQ(kernel.buffers[a].moves_with, joined->args[a].value == body.product ? -1 : 0);
    EXPECT_EQ(joined->args[a].written, joined->args[a].value == body.product || joined->args[a].value == body.next);
  }
  EXPECT_THAT(values, ::testing::UnorderedElementsAre(body.carried, body.product, body.moving, body.next));
}

TEST(JoinKernels, PrintAndParse) {
  const absl::StatusOr<FusionKernel> joined = Body().Join(100);
  ASSERT_TRUE(joined.ok()) << joined.status();
  const std::string text = movement::Print(joined->kernel);
  EXPECT_THAT(text, HasSubstr("moves with loop 0\n"));
  EXPECT_THAT(text, HasSubstr("repeat 100 {\nparallel ("));
  const absl::StatusOr<movement::Kernel> parsed = movement::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(movement::Print(*parsed), text);
  EXPECT_NE(joined->key, Body().Join(99)->key);
}

TEST(JoinKernels, ATextWithTheLoopAndItsBarriers) {
  const Body body;
  const std::string text = FindBackend("cuda")->PrintKernel(body.Join(100)->kernel, "k", body.device);
  EXPECT_THAT(text, HasSubstr("for (int iteration = 0; iteration < 100; ++iteration)"));
  EXPECT_THAT(text, HasSubstr("if (iteration > 0) SYNC_DEVICE"));
  EXPECT_THAT(text, HasSubstr("[iteration]);"));
  EXPECT_THAT(text, HasSubstr("float* const* __restrict__ m0"));
}

// An iteration is a barrier for each kernel, where it was a launch for each.
TEST(JoinKernels, CostBarriersInsteadOfLaunches) {
  const Body body;
  const auto ns = [&](int64_t trips) {
    return movement::EstimateCost(body.Join(trips)->kernel, body.device, body.device.parallel_units).latency_ns;
  };
  const KernelRun run{{&body.kernels[0], &body.kernels[1]}, 7, 100};
  EXPECT_LT(ns(100), ApartNs({run}, body.device, body.device.parallel_units));
  EXPECT_GT(ns(101) - ns(100), 2e9 * body.device.barrier_s);
  EXPECT_NEAR(ns(101) - ns(100), ns(51) - ns(50), 1);
}

TEST(JoinKernels, KernelsThatRunOnceStandBetweenLoops) {
  const Body body;
  const KernelRun once{{&body.kernels[0]}}, loop{{&body.kernels[1]}, 7, 10};
  const absl::StatusOr<FusionKernel> joined = JoinKernels({once, loop}, body.memory, body.device);
  // `carried` moves with the loop, and the kernel that runs once reads it.
  EXPECT_FALSE(joined.ok());
  EXPECT_FALSE(JoinKernels({once, {{&body.kernels[1]}}}, body.memory, body.device).ok()) << "the loop is not there";
  LoopMemory memory = body.memory;
  memory.places.erase(body.carried);
  const absl::StatusOr<FusionKernel> apart = JoinKernels({once, loop}, memory, body.device);
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_EQ(apart->kernel.phase_loops[0].first, body.kernels[0].kernel.phases.size());
}

TEST(JoinKernels, RefusesWhatALaunchCannotHold) {
  Body body;
  body.kernels[1].kernel.phases[0].steps.resize(1);
  body.kernels[1].kernel.phases[0].steps[0].strategy = movement::RoutineCall{"sort", DType::kF32, {}, {}};
  const absl::Status refused = body.Join(100).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.message(), HasSubstr("routine"));
}

}  // namespace
}  // namespace fusion
