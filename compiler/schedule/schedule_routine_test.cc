#include "compiler/schedule/schedule_routine.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::OrFail;
using testing::ParseTe;

constexpr char kTopK[] = R"(te p(%0: f32[2, 5]) {
  %1, %2: f32[2, 3], i64[2, 3] = routine top_k(%0) {5, 1, 3, 1} tasks 2 scratch 140
  return %1
})";

TEST(ScheduleRoutine, TasksAreTheGridAndOperandsTheArguments) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleRoutine(ParseTe(kTopK), {}));
  const movement::Kernel& kernel = scheduled.kernel;
  ASSERT_EQ(kernel.phases.size(), 1u);
  EXPECT_EQ(kernel.phases[0].tasks(), 2);
  ASSERT_EQ(kernel.phases[0].steps.size(), 1u);
  const movement::Step& step = kernel.phases[0].steps[0];
  ASSERT_TRUE(step.Is<movement::RoutineCall>());
  const auto& routine = *step.As<movement::RoutineCall>();
  EXPECT_EQ(routine.name, "top_k");
  EXPECT_EQ(routine.inputs, std::vector<int>{0});
  EXPECT_EQ(routine.params, (std::vector<int64_t>{5, 1, 3, 1}));
  // Nobody reads the indices, so they are written to memory of the kernel's own.
  ASSERT_EQ(step.stores.size(), 2u);
  EXPECT_EQ(kernel.buffers[step.stores[0].buffer].scope, Scope::kKernel);
  EXPECT_EQ(kernel.buffers[step.stores[1].buffer].scope, Scope::kDevice);
  EXPECT_EQ(kernel.buffers.back().scope, Scope::kBlock);
  EXPECT_GE(kernel.scratch_bytes, 140);
}

TEST(ScheduleRoutine, OperandsLieRowMajor) {
  const absl::StatusOr<ScheduledFusionBlock> scheduled =
      ScheduleRoutine(ParseTe(kTopK), {{0, Layout{0, Layout::kWhole}}});
  EXPECT_EQ(scheduled.status().code(), absl::StatusCode::kFailedPrecondition) << scheduled.status();
  EXPECT_NE(scheduled.status().message().find("top_k"), std::string::npos) << scheduled.status();
}

}  // namespace
}  // namespace fusion
