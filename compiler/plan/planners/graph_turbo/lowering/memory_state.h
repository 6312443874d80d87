// Where everything is while a program is made: layers' expressions, tensors in DDR, weights and results of steps.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_STATE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_STATE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/plan/planners/graph_turbo/lowering/core_work.h"
#include "compiler/plan/planners/graph_turbo/lowering/lowered_program.h"
#include "compiler/plan/planners/graph_turbo/lowering/sequence.h"
#include "compiler/plan/planners/graph_turbo/lowering/weights.h"

namespace fusion::graph_turbo {

// The units of a core that the kinds of segments run on.
struct Units {
  std::string matrix, vector, special;
};

struct MemoryState {
  struct LayerInfo {
    std::unique_ptr<Layer> layer;
    std::vector<int> expressions;  // of the program, by segment
    std::vector<std::string> units;
    std::vector<bool> table;   // by input: is only gathered from DDR
    std::vector<bool> unread;  // by input: no result needs an element of it, as of the extents that a Reshape takes
  };

  // A part of what a layer reads, in the GB, and the block of DDR that it was copied from.
  struct Staged {
    Held held;
    const Block* of = nullptr;
  };

  // The arguments outlive the state. Puts the model's inputs, its outputs and all weights into DDR.
  MemoryState(const OpGraph& graph, const std::vector<Step>& steps, const dsa::Machine& machine, const Units& units,
              const LowerOptions& options);
  MemoryState(const MemoryState&) = delete;

  // The layer of an operator, whose expressions join the program with the first call.
  const Layer& LayerOf(int op);
  // Does the layer need nothing of the input, as of a tensor without elements? It has no address then.
  bool IsUnread(int op, size_t input);
  // The part of `tensor` that step `s` has made.
  Part* PartOf(int s, int tensor);
  // Does step `s` read the part?
  bool InUse(const Part& part, int s);
  // Brings the weights of step `s` into the GB while step `now` is at hand, where there is room. For the step at hand,
  // weights that are read later make room; for a later one `spare_bytes` have to be left.
  void BringWeights(int now, int s, int64_t spare_bytes = 0);
  // The pieces that hold an input of step `s` that is no weight.
  std::vector<const Held*> PiecesOf(int s, size_t input);
  // Brings what step `s`, the one at hand, reads of pieces in DDR into the GB, where there is room and they are not
  // there yet.
  void Stage(int s);
  // Fills what the layer of step `s` reads of each input, and where that is at the moment.
  void FindSources(int s, LayerWork* work);
  // Makes a block of the GB, for which weights that are read after step `s` leave it, and, if `spill`, parts of
  // results, those that live longest first. nullptr: there is no room.
  Block* NewGlobal(int64_t elements, int s, bool spill);
  // A block of DDR for an output of step `s`; a model's output has its own.
  Held InDdr(int s, size_t output);
  std::string NewName() { return absl::StrCat("spill", spills++); }

  const OpGraph& graph;
  const std::vector<Step>& steps;
  const dsa::Machine& machine;
  const Units units;
  const LowerOptions options;
  Emitter emitter;
  Weights weights;
  std::vector<LayerInfo> layers;              // by operator
  std::vector<std::vector<Part>> parts;       // by step, then output
  std::vector<Part*> live;                    // parts that some later step reads
  std::vector<int> death;                     // by step: the last one that reads its results
  std::map<int, Held> ddr;                    // by tensor: inputs and outputs of the model
  std::map<int, std::vector<Staged>> staged;  // of the step at hand, by input
  std::vector<std::vector<Region>> spare_tables;  // of CoreWork
  int spills = 0;
  LoweredProgram lowered;

 private:
  void AddInputs();
  bool IsStaged(size_t input, const Held& piece) const;
  // Brings `wanted` of a piece in DDR, in at most so many parts, or nothing.
  void StagePiece(int s, size_t input, const Held& piece, const Region& wanted, int64_t parts);
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_MEMORY_STATE_H_
