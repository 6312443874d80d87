#include "compiler/bundle/plan_key.h"

#include <gtest/gtest.h>

#include <functional>

namespace fusion {
namespace {

// A plan of two launches: a product with a weight, and a function of it.
struct Plan {
  Plan() {
    const auto add = [&](Buffer::Kind kind, int64_t offset) {
      Buffer buffer;
      buffer.kind = kind;
      buffer.name = "b";
      buffer.size_bytes = 64;
      buffer.offset = offset;
      laid_out.program.buffers.push_back(buffer);
    };
    add(Buffer::Kind::kInput, 0);
    add(Buffer::Kind::kConstant, 0);
    add(Buffer::Kind::kConstant, 0);
    add(Buffer::Kind::kArena, 0);
    add(Buffer::Kind::kOutput, 0);
    laid_out.constants = {{1, 0}, {2, 1}};
    laid_out.program.launches.resize(2);
    laid_out.program.launches[0].buffers = {0, 1, 3};
    laid_out.program.launches[1].buffers = {3, 2, 4};
    launches.resize(2);
    launches[0].fusion_kernel.key = "product";
    launches[1].fusion_kernel.key = "function";
  }
  std::string Key() const { return PlanKey(laid_out, launches, device, threads, math); }
  LaidOut laid_out;
  std::vector<PlannedLaunch> launches;
  DeviceModel device;
  int threads = 1;
  std::string math = "fast";
};

TEST(PlanKey, CoversWhatTheLatencyDependsOn) {
  const std::string key = Plan().Key();
  EXPECT_EQ(Plan().Key(), key);
  const struct {
    const char* what;
    std::function<void(Plan&)> change;
  } kCases[] = {
      {"a kernel", [](Plan& plan) { plan.launches[1].fusion_kernel.key = "another function"; }},
      {"the order", [](Plan& plan) { std::swap(plan.launches[0], plan.launches[1]); }},
      {"an argument", [](Plan& plan) { plan.laid_out.program.launches[1].buffers[1] = 1; }},
      {"a batch",
       [](Plan& plan) {
         plan.laid_out.program.launches[1].others = {{3, 2, 4}};
       }},
      {"a place in the arena", [](Plan& plan) { plan.laid_out.program.buffers[3].offset = 64; }},
      {"a size", [](Plan& plan) { plan.laid_out.program.buffers[0].size_bytes = 128; }},
      {"weights that are one", [](Plan& plan) { plan.laid_out.constants[1].second = 0; }},
      {"the device", [](Plan& plan) { plan.device.name = "another CPU"; }},
      {"threads", [](Plan& plan) { plan.threads = 2; }},
      {"subnormals", [](Plan& plan) { plan.math = "strict"; }},
  };
  for (const auto& one : kCases) {
    Plan plan;
    one.change(plan);
    EXPECT_NE(plan.Key(), key) << one.what;
  }
}

TEST(PlanKey, DoesNotCoverNames) {
  Plan plan;
  plan.laid_out.program.buffers[0].name = "another name";
  plan.laid_out.program.launches[0].label = "another label";
  plan.launches[0].nodes = {"a node"};
  EXPECT_EQ(plan.Key(), Plan().Key());
}

}  // namespace
}  // namespace fusion
