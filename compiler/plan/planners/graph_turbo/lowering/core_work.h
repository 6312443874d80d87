// One core's work for a layer of an instance: its tiles, and the room in its LB that they take turns in.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/plan/planners/graph_turbo/lowering/parts.h"
#include "compiler/plan/planners/graph_turbo/lowering/tiling.h"

namespace fusion::graph_turbo {

// An input in DDR passes through the GB in panels, boxes that hold what the next tiles need, as far as
// a slot has room. The cores that need the same parts at the same time read one stream.
struct Stream {
  std::vector<Held> slots;  // taken in turn
  int64_t slot_elements = 0;
  size_t next = 0;
};

inline constexpr int64_t kStreamSlots = 4;
// The bytes of a panel whose transfer from DDR takes eight times its start-up.
double PanelBytes(const dsa::Machine& machine);

struct LayerInput {
  bool weight = false;
  bool table = false;                // is only gathered from DDR
  std::vector<const Held*> sources;  // pieces that hold it
  std::vector<Stream> streams;
  std::vector<int> stream_of;  // by core: the stream that it reads, or kNone; empty: no core reads one
};

// Is all of it in DDR?
bool IsInDdr(const LayerInput& input);

// The things that the cores of a cluster have in common for one layer of one instance.
struct LayerWork {
  Emitter* emitter = nullptr;
  const Layer* layer = nullptr;
  std::vector<int> expressions;    // of the program, by segment
  std::vector<std::string> units;  // by segment
  std::vector<LayerInput> inputs;  // by input of the layer
  // Tables of boxes that nobody uses any more: cores take their memory from here, and give it back at their end.
  // nullptr: they make it anew.
  std::vector<std::vector<Region>>* spare_tables = nullptr;
};

// Where a core's part of an output goes: it is computed in its place in the LB, or tile by tile taken from there.
struct OutputTarget {
  Held local;  // without a block: there is none
  Held away;   // in the GB or in DDR
};

class CoreWork {
 public:
  // `work` outlives this.
  CoreWork(LayerWork* work, int core, std::vector<Region> outputs);
  CoreWork(const CoreWork&) = delete;
  ~CoreWork();

  // Is what this core needs of the input one piece in its LB?
  bool Resident(size_t input) const;

  // Takes the blocks that the tiles need; false: the LB has no room for them, and none is taken.
  bool Reserve(const Tiling& tiling, const std::vector<OutputTarget>& targets);
  size_t tiles() const { return tiles_; }
  // The first segment of a tile, chunk by chunk, so that cores that need the same weights need them at the same time;
  // with the last chunk the other segments.
  void EmitChunk(size_t tile, size_t chunk);
  void Release();

  // The box that a tile needs of an input in the first chunk.
  const Region& Needed(size_t tile, size_t input) const;
  // The most elements of an input that a block of this core holds at once.
  int64_t LargestBox(size_t input) const;

  const std::vector<Region>& outputs() const { return outputs_; }
  // The boxes that the core needs and makes, of all tensors of the layer's program.
  const std::vector<Region>& core_regions() const { return core_; }
  int core() const { return core_number_; }

 private:
  // Blocks that hold different boxes of one tensor in turn.
  struct Ring {
    absl::InlinedVector<Block*, 2> blocks;
    size_t current = 0;
    Region box;  // that the current block holds; `nothing` before the first
    bool whole = false;
  };

  // The box that a tile needs or makes of a tensor in a chunk.
  const Region& Box(size_t tile, size_t chunk, te::TensorId tensor) const {
    return table_[(tile * chunks_ + chunk) * core_.size() + tensor];
  }
  bool ReserveRing(te::TensorId tensor, bool whole, bool made);
  Held Turn(te::TensorId tensor, const Region& region);
  // `tile` and `chunk` are those at hand, for which the input's `region` is needed.
  Held Fetch(size_t input, const Region& region, size_t tile, size_t chunk);
  Held Streamed(size_t input, Stream* stream, const Region& region, size_t tile, size_t chunk);
  Region PanelFrom(te::TensorId tensor, const Region& region, int64_t most_elements, size_t tile, size_t chunk) const;
  void EmitSegment(size_t tile, size_t segment, size_t chunk);

  LayerWork* work_;
  const int core_number_;
  const std::vector<Region> outputs_;
  std::vector<Region> core_;
  Tiling tiling_;
  std::vector<OutputTarget> targets_;
  size_t tiles_ = 0, chunks_ = 1;
  std::vector<Region> table_;  // by tile, chunk and tensor; it may be longer
  std::vector<Ring> rings_;    // by tensor; one without blocks is not reserved
  std::vector<Held> made_;     // by tensor: of the segments of the tile at hand
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_
