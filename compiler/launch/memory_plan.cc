#include "compiler/launch/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "runtime/bundle/buffer_footprint.h"

namespace fusion {

int64_t PlanArena(std::vector<ArenaItem>* items) {
  std::vector<size_t> order(items->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return (*items)[a].size_bytes > (*items)[b].size_bytes; });
  auto footprint = [](const ArenaItem& item) { return BufferFootprint(item.size_bytes); };
  std::vector<size_t> placed;  // by offset
  int64_t arena = 0;
  for (size_t i : order) {
    ArenaItem& item = (*items)[i];
    int64_t offset = 0;
    for (size_t p : placed) {
      const ArenaItem& other = (*items)[p];
      if (other.last < item.first || item.last < other.first) continue;
      if (other.offset >= offset + footprint(item)) break;
      offset = std::max(offset, other.offset + footprint(other));
    }
    item.offset = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return (*items)[a].offset < (*items)[b].offset; }),
                  i);
    arena = std::max(arena, offset + footprint(item));
  }
  return arena;
}

}  // namespace fusion
