#include "compiler/plan/planners/graph_turbo/lowering/memory_space.h"

#include <algorithm>

namespace fusion::graph_turbo {

void Waits::Add(int engine, int instruction) {
  for (auto& [known, last] : list_) {
    if (known != engine) continue;
    last = std::max(last, instruction);
    return;
  }
  list_.emplace_back(engine, instruction);
}

void Waits::Merge(const Waits& other) {
  for (const auto& [engine, instruction] : other.list_) Add(engine, instruction);
}

MemorySpace::MemorySpace(int64_t capacity_bytes) { segments_.push_back({0, capacity_bytes, true, {}}); }

std::optional<MemorySpace::Range> MemorySpace::Allocate(int64_t bytes) {
  bytes = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  for (size_t first = 0; first < segments_.size(); ++first) {
    int64_t found = 0;
    size_t last = first;
    for (; last < segments_.size() && segments_[last].free && found < bytes; ++last) found += segments_[last].bytes;
    if (found < bytes) continue;
    Range range{segments_[first].offset, bytes, {}};
    for (size_t s = first; s < last; ++s) range.before.Merge(segments_[s].accesses);
    Segment rest = segments_[last - 1];
    rest.offset = range.offset + bytes;
    rest.bytes = found - bytes;
    segments_.erase(segments_.begin() + first, segments_.begin() + last);
    if (rest.bytes > 0) segments_.insert(segments_.begin() + first, rest);
    segments_.insert(segments_.begin() + first, {range.offset, bytes, false, {}});
    return range;
  }
  return std::nullopt;
}

void MemorySpace::Free(const Range& range, const Waits& accesses) {
  for (Segment& segment : segments_) {
    if (segment.offset != range.offset) continue;
    segment.free = true;
    segment.accesses = range.before;
    segment.accesses.Merge(accesses);
    return;
  }
}

int64_t MemorySpace::LargestFree() const {
  int64_t largest = 0, run = 0;
  for (const Segment& segment : segments_) {
    run = segment.free ? run + segment.bytes : 0;
    largest = std::max(largest, run);
  }
  return largest / kAlignment * kAlignment;
}

}  // namespace fusion::graph_turbo
