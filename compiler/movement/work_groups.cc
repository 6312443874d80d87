#include "compiler/movement/work_groups.h"

#include <algorithm>

namespace fusion::movement {

int WorkItems(const Kernel& kernel, int work_group_size) {
  for (const Phase& phase : kernel.phases) {
    VisitSteps(phase, [&](const Step& step) {
      const auto* tile = step.As<ThreadgroupTile>();
      if (tile == nullptr) return;
      work_group_size = std::max(work_group_size, tile->item_rows * tile->item_columns * tile->product.work_items);
    });
  }
  return work_group_size;
}

double SharedLoadOps(int count, int lanes) {
  constexpr double kOfVector = 1.5, kAlone = 4;
  return (count % lanes == 0 ? kOfVector : kAlone) * count;
}

bool TaskPerItem(const Kernel& kernel, const Phase& phase, int work_group_size) {
  const bool tiles =
      std::any_of(phase.steps.begin(), phase.steps.end(), [](const Step& step) { return step.Is<RegisterTile>(); });
  bool shares_memory = false;
  VisitSteps(phase, [&](const Step& step) {
    VisitBuffers(step, [&](int b) { shares_memory = shares_memory || kernel.buffers[b].scope == Scope::kBlock; });
  });
  return work_group_size > 1 && tiles && !shares_memory && phase.row_nests.empty() && phase.task_loops.empty();
}

int64_t WorkGroups(const Kernel& kernel, const Phase& phase, int work_group_size) {
  const int64_t tasks = phase.tasks();
  return TaskPerItem(kernel, phase, work_group_size) ? (tasks + work_group_size - 1) / work_group_size : tasks;
}

std::vector<PhaseRange> LaunchesOf(const Kernel& kernel) {
  if (kernel.persistent) return {{0, kernel.phases.size()}};
  return kernel.BetweenBarriers();
}

const PhaseLoop* PhaseLoopAt(const Kernel& kernel, size_t phase) {
  for (const PhaseLoop& loop : kernel.phase_loops) {
    if (loop.first == phase) return &loop;
  }
  return nullptr;
}

std::vector<int64_t> LaunchedWorkGroups(const Kernel& kernel, int work_group_size) {
  std::vector<int64_t> launched;
  for (const PhaseRange& launch : LaunchesOf(kernel)) {
    int64_t all = 0, most = 0;
    for (size_t p = launch.first; p < launch.end; ++p) {
      const int64_t groups = WorkGroups(kernel, kernel.phases[p], work_group_size);
      all += groups;
      most = std::max(most, groups);
    }
    launched.push_back(kernel.persistent ? most : all);
  }
  return launched;
}

std::set<int> WrittenBuffers(const Phase& phase) {
  std::set<int> written;
  VisitSteps(phase, [&](const Step& step) {
    for (const Store& store : step.stores) written.insert(store.buffer);
    if (step.look) written.insert(step.look->buffer);
  });
  return written;
}

}  // namespace fusion::movement
