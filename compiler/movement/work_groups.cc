#include "compiler/movement/work_groups.h"

#include <algorithm>

namespace fusion::movement {

int WorkItems(const Kernel& kernel, int work_group_size) {
  for (const Phase& phase : kernel.phases) {
    VisitSteps(phase, [&](const Step& step) {
      const auto* tile = step.As<ThreadgroupTile>();
      if (tile != nullptr) work_group_size = std::max(work_group_size, tile->product.work_items);
    });
  }
  return work_group_size;
}

bool TaskPerItem(const Kernel& kernel, const Phase& phase, int work_group_size) {
  const bool tiles =
      std::any_of(phase.steps.begin(), phase.steps.end(), [](const Step& step) { return step.Is<RegisterTile>(); });
  return work_group_size > 1 && tiles && kernel.scratch_bytes == 0 && phase.row_nests.empty() &&
         phase.task_loops.empty();
}

int64_t WorkGroups(const Kernel& kernel, const Phase& phase, int work_group_size) {
  const int64_t tasks = phase.tasks();
  return TaskPerItem(kernel, phase, work_group_size) ? (tasks + work_group_size - 1) / work_group_size : tasks;
}

std::vector<int64_t> LaunchedWorkGroups(const Kernel& kernel, int work_group_size) {
  std::vector<int64_t> groups;
  for (const Phase& phase : kernel.phases) groups.push_back(WorkGroups(kernel, phase, work_group_size));
  if (kernel.persistent) groups = {*std::max_element(groups.begin(), groups.end())};
  return groups;
}

std::set<int> WrittenBuffers(const Phase& phase) {
  std::set<int> written;
  VisitSteps(phase, [&](const Step& step) {
    for (const Store& store : step.stores) written.insert(store.buffer);
  });
  return written;
}

}  // namespace fusion::movement
