// Where the iterations of a loop find their values. A loop's kernels are launched once an iteration, with arguments
// that move: a slice is a step of the scanned value, a carried value and its successor are slots of one piece of
// memory, and what is stacked is written where it stands in the stack. So a loop copies nothing from one iteration to
// the next (Souffle, ASPLOS 2024, section 6.3 keeps an LSTM's state in place in the same way).
#ifndef FUSION_COMPILER_LAUNCH_LOOP_MEMORY_H_
#define FUSION_COMPILER_LAUNCH_LOOP_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "compiler/ecg/graph.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// Equal pieces of memory, one behind the other.
struct LoopSlots {
  int64_t slot_bytes = 0;
  int64_t slots = 0;
  int64_t lead_bytes = 0;  // before slot 0, so that a stack that begins at slot 1 is aligned

  int64_t size_bytes() const { return lead_bytes + slot_bytes * slots; }
};

// In iteration t a value lies in slot (first + t * step) mod slots (LoopMemory::SlotsOf).
struct LoopPlace {
  int memory = -1;                  // an index into LoopMemory::memories, or -1: the slots are parts of `whole`
  ecg::ValueId whole = ecg::kNone;  // of a slice: the value that is scanned
  LoopSlots parts;                  // of a slice: the parts of `whole`
  int64_t first = 0;
  int64_t step = 0;  // 1, -1, or 0 for a value outside the loop
  int loop = -1;     // an index into ecg::Loops::list; -1 for a value outside the loop
};

struct LoopMemory {
  std::vector<LoopSlots> memories;
  std::map<ecg::ValueId, LoopPlace> places;

  // The slots in which a value of `places` moves.
  const LoopSlots& SlotsOf(const LoopPlace& place) const {
    return place.memory < 0 ? place.parts : memories[place.memory];
  }
};

// `graph` is a result of simplify::SeparateLoopValues whose loop values have plain layouts, `loops` are its loops.
LoopMemory PlaceLoopValues(const ecg::Graph& graph, const ecg::Loops& loops);

// The values whose memory is decided by a loop. They may not be placed in other values. Those in `written` may hold no
// other value either, since it would have to move with them.
struct LoopValues {
  std::set<ecg::ValueId> placed, written;
};
LoopValues ValuesOfLoops(const ecg::Graph& graph, const ecg::Loops& loops);

// Fusion blocks that run together: those of one loop, or those that run once between loops.
struct LoopSegment {
  int loop = ecg::Loops::kOnce;
  std::vector<size_t> fusion_blocks;  // ascending; without the boundaries
};
// Returns all fusion blocks but the boundaries, in an order of segments in which everything that is read has been
// written before. `boundaries` gets the others.
std::vector<LoopSegment> SegmentsOf(const ecg::Graph& graph, const ecg::Loops& loops,
                                    const std::vector<FusionBlock>& fusion_blocks, std::set<size_t>* boundaries);

// Launches [first, end) run once an iteration.
struct LaunchLoop {
  int loop = 0;  // an index into ecg::Loops::list
  size_t first = 0, end = 0;
  int64_t trips = 1;
  bool in_launch = false;  // one launch, whose kernel runs the iterations
};

// The loops of a program that is planned.
struct LoopPlan {
  LoopMemory memory;
  std::vector<LaunchLoop> launches;
};

// Returns the loops of launches, each of which is some fusion blocks. The launches of a loop are neighbours.
std::vector<LaunchLoop> LoopsOfLaunches(const ecg::Loops& loops, const std::vector<FusionBlock>& fusion_blocks,
                                        const std::vector<std::vector<size_t>>& launches);

}  // namespace fusion

#endif  // FUSION_COMPILER_LAUNCH_LOOP_MEMORY_H_
