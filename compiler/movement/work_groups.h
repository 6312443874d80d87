// The launch of a phase on a device of work-groups.
#ifndef FUSION_COMPILER_MOVEMENT_WORK_GROUPS_H_
#define FUSION_COMPILER_MOVEMENT_WORK_GROUPS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// The kernel's work-group size on a device with groups of `group` work-items. It is larger where a tile of results is
// shared by more work-items than such a group holds.
int WorkItems(const Kernel& kernel, int work_group_size);

// The most work-items that reduce a contiguous row together, or compute a row of a row nest: neighbours that run in
// step, which read neighbours.
inline constexpr int kRowTeam = 32;

// Work-items with which a unit computes at its full rate: a warp of 32 for each of its four schedulers. Each has four
// independent elements, which cover the latency of arithmetic.
inline constexpr double kItemsThatFillAUnit = 128;
// Cycles from a work-group's request for the next K-slice of a threadgroup tile until it has it: memory, and barriers.
inline constexpr double kSliceLatencyCycles = 700;

// The cost, in FMAs, of `count` elements that a work-item loads from shared memory: a unit executes four times as many
// FMAs as it loads words, and vectors of which neighbours load the same count less.
double SharedLoadOps(int count, int lanes);

// Does one work-item compute each task? It does where tasks are register tiles without scratch, because a tile that a
// work-group shares would leave the others idle; a work-group then has as many tasks as work-items. All other tasks
// belong to a whole work-group.
bool TaskPerItem(const Kernel& kernel, const Phase& phase, int work_group_size);

// Work-groups of size `group` in a launch of the phase.
int64_t WorkGroups(const Kernel& kernel, const Phase& phase, int work_group_size);

// The kernel's buffers that a step of the phase stores to or leaves its look in.
std::set<int> WrittenBuffers(const Phase& phase);

// The phases of each launch of a kernel on a device of work-groups: phases beside each other share one, and those of a
// persistent kernel do.
std::vector<PhaseRange> LaunchesOf(const Kernel& kernel);

// The loop whose first phase this is; null where none begins.
const PhaseLoop* PhaseLoopAt(const Kernel& kernel, size_t phase);

// Work-groups of each launch: those of all its phases, or for a persistent kernel as many as its largest phase can use.
std::vector<int64_t> LaunchedWorkGroups(const Kernel& kernel, int work_group_size);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_WORK_GROUPS_H_
