// Static memory plan: assigns offsets in one arena such that buffers that are alive at the same time never overlap.
// Places buffers greedily by size (largest first) into the lowest gap, which is within a few per cent of the lower
// bound on real graphs.
#ifndef FUSION_COMPILER_LAUNCH_MEMORY_PLAN_H_
#define FUSION_COMPILER_LAUNCH_MEMORY_PLAN_H_

#include <cstdint>
#include <vector>

namespace fusion {

struct ArenaItem {
  int64_t size_bytes = 0;   // without slack
  int first = 0, last = 0;  // times of launches, inclusive
  int64_t offset = 0;       // out: a multiple of 64
};

// Fills the offsets. Returns the arena's size in bytes, slack included.
int64_t PlanArena(std::vector<ArenaItem>* items);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_MEMORY_PLAN_H_
