// Addresses of one memory of an accelerator while a program for it is made, and what a new owner of addresses has to
// wait for.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_SPACE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_SPACE_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"

namespace fusion::graph_turbo {

// Instructions to wait for: of each engine the last one, which its earlier ones precede.
class Waits {
 public:
  void Add(int engine, int instruction);
  void Merge(const Waits& other);
  void Clear() { list_.clear(); }
  using List = absl::InlinedVector<std::pair<int, int>, 4>;
  const List& list() const { return list_; }  // engine, instruction

 private:
  List list_;
};

class MemorySpace {
 public:
  explicit MemorySpace(int64_t capacity_bytes);

  struct Range {
    int64_t offset = 0, bytes = 0;  // rounded up to kAlignment
    Waits before;                   // the accesses of earlier owners
  };
  static constexpr int64_t kAlignment = 32;

  // First fit. nullopt where no free range is long enough.
  std::optional<Range> Allocate(int64_t bytes);
  // Frees a range; `accesses` are its owner's.
  void Free(const Range& range, const Waits& accesses);
  int64_t LargestFree() const;

 private:
  // Neighbouring free segments stay apart, so that a new owner waits only for the accesses to what it takes.
  struct Segment {
    int64_t offset = 0, bytes = 0;
    bool free = true;
    Waits accesses;
  };
  std::vector<Segment> segments_;  // by offset, without gaps
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_SPACE_H_
