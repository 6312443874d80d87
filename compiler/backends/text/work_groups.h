// What a launch of a phase is on a device whose work-items share tasks in groups.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_WORK_GROUPS_H_
#define FUSION_COMPILER_BACKENDS_TEXT_WORK_GROUPS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::text {

// Work-items of the kernel's groups, where the device's have `group`: more where several multiply fragments together
// that a group does not hold.
int WorkItems(const movement::Kernel& kernel, int group);

// A task that is a register tile without scratch is computed by one work-item, and a group has as many tasks as
// work-items: shared by a group, a tile would leave the others idle. Any other task is a group's.
bool TaskPerItem(const movement::Kernel& kernel, const movement::Phase& phase, int group);

// Groups of `group` work-items that a launch of the phase has.
int64_t WorkGroups(const movement::Kernel& kernel, const movement::Phase& phase, int group);

// Of the kernel's, those that a step of the phase stores to.
std::set<int> WrittenBuffers(const movement::Phase& phase);

// Groups of each launch of a kernel: one for each phase, or one in which the groups stay, as many as its largest phase
// has use for.
std::vector<int64_t> LaunchedGroups(const movement::Kernel& kernel, int group);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_WORK_GROUPS_H_
