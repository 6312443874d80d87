// One core's work for a layer of an instance: its tiles, and the room in its LB that they take turns in.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "compiler/plan/planners/graph_turbo/lowering/parts.h"
#include "compiler/plan/planners/graph_turbo/lowering/tiling.h"

namespace fusion::graph_turbo {

// A weight that does not stay in the GB: its tiles pass through blocks of the GB, which all cores read.
struct Stream {
  std::vector<Held> slots;
  size_t next = 0;
};

struct LayerInput {
  bool weight = false;
  bool table = false;                // is only gathered from DDR
  std::vector<const Held*> sources;  // pieces that hold it
  Stream stream;
};

// The things that the cores of a cluster have in common for one layer of one instance.
struct LayerWork {
  Emitter* emitter = nullptr;
  const Layer* layer = nullptr;
  std::vector<int> expressions;    // of the program, by segment
  std::vector<std::string> units;  // by segment
  std::vector<LayerInput> inputs;  // by input of the layer
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

  // Is what this core needs of the input one piece in its LB?
  bool Resident(size_t input) const;

  // Takes the blocks that the tiles need; false: the LB has no room for them, and none is taken.
  bool Reserve(const Tiling& tiling, const std::vector<OutputTarget>& targets);
  size_t tiles() const { return tiles_.size(); }
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
  struct Tile {
    std::vector<Region> outputs;
    std::vector<std::vector<Region>> tensors;  // by chunk: what it needs and makes of each tensor
  };

  bool ReserveRing(te::TensorId tensor, bool whole, bool made);
  Held Turn(te::TensorId tensor, const Region& region);
  Held Fetch(size_t input, const Region& region);
  Held Streamed(LayerInput* input, const Region& region);
  void EmitSegment(const Tile& tile, size_t segment, size_t chunk);

  LayerWork* work_;
  const int core_number_;
  const std::vector<Region> outputs_;
  std::vector<Region> core_;
  Tiling tiling_;
  std::vector<OutputTarget> targets_;
  std::vector<Tile> tiles_;
  std::vector<Ring> rings_;  // by tensor; one without blocks is not reserved
  std::vector<Held> made_;   // by tensor: of the segments of the tile at hand
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_CORE_WORK_H_
