#include "compiler/backends/text/print_task.h"

#include <gtest/gtest.h>

namespace fusion::text {
namespace {

TEST(NeedsWideIndices, WhereALoopOrTheTasksAreTooMany) {
  movement::Phase phase;
  phase.grid = {{0, 1 << 20}};
  movement::Step step;
  step.loops = {{{1, 1 << 10}, std::nullopt}, {{2, 1 << 10}, std::nullopt}};
  phase.steps = {step};
  EXPECT_FALSE(NeedsWideIndices(phase, 64));
  EXPECT_TRUE(NeedsWideIndices(phase, 2048));  // threads of all tasks
  phase.steps[0].loops.push_back({{3, 1 << 11}, std::nullopt});
  EXPECT_TRUE(NeedsWideIndices(phase, 64));  // points of a step
  phase.steps[0].loops.pop_back();
  phase.steps[0].reduction.emplace();
  phase.steps[0].reduction->axes = {{4, 1 << 16}, {5, 1 << 15}};
  EXPECT_TRUE(NeedsWideIndices(phase, 64));  // points of a reduction
}

}  // namespace
}  // namespace fusion::text
