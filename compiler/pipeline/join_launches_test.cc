#include "compiler/pipeline/join_launches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "compiler/cost/stored_devices.h"
#include "compiler/ecg/text.h"
#include "compiler/pipeline/programs.h"
#include "nlohmann/json.hpp"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// h' = tanh(norm(h·w) + x) over eight steps, with a function in front and one behind.
constexpr char kRecurrence[] = R"(graph g(%h0: f32[1, 64], %given: f32[8, 1, 64], %w: f32[64, 64]) {
  %xs: f32[8, 1, 64] = Tanh(%given)
  %h: f32[1, 64], %x: f32[1, 64] = LoopBegin(%h0, %xs) {carried = 1, loop = 7, reversed = ints[0], trips = 8}
  %p: f32[1, 64] = MatMul(%h, %w)
  %n: f32[1, 64] = Softmax(%p)
  %s: f32[1, 64] = Add(%n, %x)
  %next: f32[1, 64] = Tanh(%s)
  %last: f32[1, 64], %all: f32[8, 1, 64] = LoopEnd(%h, %next, %next) {carried = 1, loop = 7, reversed = ints[0], trips = 8}
  %y: f32[8, 1, 64] = Exp(%all)
  return %y
})";

struct Made {
  PreparedPrograms programs;
  const Prepared& model() const { return programs[0]->model; }
};

Made Make(const std::string& planner, const DeviceModel& device, const std::string& disabled = "") {
  ModelOracle oracle;
  CompileContext context;
  context.device = &device;
  context.oracle = &oracle;
  CompileOptions options;
  options.planner = planner;
  options.target = "cuda";
  if (!disabled.empty()) options.disabled_passes.insert(disabled);
  absl::StatusOr<ecg::Graph> graph = ecg::Parse(kRecurrence);
  EXPECT_TRUE(graph.ok()) << graph.status();
  ModelFiles files;
  files.graph = &*graph;
  absl::StatusOr<PreparedPrograms> programs = PreparePrograms(files, options, context);
  EXPECT_TRUE(programs.ok()) << programs.status();
  return {*std::move(programs)};
}

int64_t LoopsInLaunches(const Made& made) {
  int64_t loops = 0;
  for (const LaunchLoop& loop : made.model().planned.loops.launches) loops += loop.in_launch;
  return loops;
}

TEST(JoinLaunches, ALoopIsOneLaunchWhereThatIsFaster) {
  DeviceModel device = *StoredDevice("cuda:sm_80");
  device.launch_s = 2e-6, device.barrier_s = 6e-6;
  const Made dear = Make("none", device);
  EXPECT_EQ(LoopsInLaunches(dear), 0);
  device.barrier_s = 1e-6;
  const Made cheap = Make("none", device);
  EXPECT_EQ(LoopsInLaunches(cheap), 1);
  EXPECT_LT(cheap.model().launches.size(), dear.model().launches.size());
  EXPECT_EQ(cheap.model().account.kernels, static_cast<int64_t>(cheap.model().launches.size()));
  EXPECT_EQ(LoopsInLaunches(Make("none", device, "join-launches")), 0);
}

// Souffle's rule: the device holds the largest grid, so that nothing cuts the program.
TEST(JoinLaunches, ASubprogramIsOneLaunch) {
  const Made made = Make("souffle-paper", *StoredDevice("cuda:sm_80"));
  ASSERT_EQ(made.model().launches.size(), 1u);
  EXPECT_EQ(LoopsInLaunches(made), 1);
  const movement::Kernel& kernel = made.model().launches[0].fusion_kernel.kernel;
  ASSERT_EQ(kernel.phase_loops.size(), 1u);
  EXPECT_GT(kernel.phase_loops[0].first, 0u);
  EXPECT_LT(kernel.phase_loops[0].end, kernel.phases.size());
  const auto plan = nlohmann::json::parse(made.model().account.plan_json);
  ASSERT_EQ(plan["joined_launches"].size(), 1u);
  EXPECT_EQ(plan["joined_launches"][0]["loops"], 1);
  const int64_t in_loop = static_cast<int64_t>(kernel.phase_loops[0].end - kernel.phase_loops[0].first);
  EXPECT_EQ(plan["joined_launches"][0]["barriers"],
            static_cast<int64_t>(kernel.BetweenBarriers().size()) - 1 + 7 * in_loop);
  EXPECT_THAT(InWords({{{3, 4}, 19, 1}}), HasSubstr("19 barriers and the iterations of 1 loop: fusion blocks 3, 4"));
}

}  // namespace
}  // namespace fusion
