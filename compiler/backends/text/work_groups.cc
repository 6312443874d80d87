#include "compiler/backends/text/work_groups.h"

#include <algorithm>

namespace fusion::text {

int WorkItems(const movement::Kernel& kernel, int group) {
  for (const movement::Phase& phase : kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) {
      if (step.strategy == movement::Strategy::kGroupTile) group = std::max(group, step.group.product.work_items);
    });
  }
  return group;
}

bool TaskPerItem(const movement::Kernel& kernel, const movement::Phase& phase, int group) {
  const bool tiles = std::any_of(phase.steps.begin(), phase.steps.end(),
                                 [](const movement::Step& step) { return step.strategy == movement::Strategy::kTile; });
  return group > 1 && tiles && kernel.scratch_bytes == 0;
}

int64_t WorkGroups(const movement::Kernel& kernel, const movement::Phase& phase, int group) {
  const int64_t tasks = phase.tasks();
  return TaskPerItem(kernel, phase, group) ? (tasks + group - 1) / group : tasks;
}

std::vector<int64_t> LaunchedGroups(const movement::Kernel& kernel, int group) {
  std::vector<int64_t> groups;
  for (const movement::Phase& phase : kernel.phases) groups.push_back(WorkGroups(kernel, phase, group));
  if (kernel.resident) groups = {*std::max_element(groups.begin(), groups.end())};
  return groups;
}

std::set<int> WrittenBuffers(const movement::Phase& phase) {
  std::set<int> written;
  movement::VisitSteps(phase, [&](const movement::Step& step) {
    for (const movement::Store& store : step.stores) written.insert(store.buffer);
  });
  return written;
}

}  // namespace fusion::text
