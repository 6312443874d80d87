// Finds room in the LBs for a layer's tiles and for its results (GraphTurbo, OSDI 2023, section 4.3).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_FIND_ROOM_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_FIND_ROOM_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "compiler/plan/planners/graph_turbo/lowering/memory_state.h"

namespace fusion::graph_turbo {

// The blocks of a layer's outputs, all at one level, and the cores with their tiles.
struct Placement {
  std::vector<std::unique_ptr<CoreWork>> cores;
  std::vector<std::vector<OutputTarget>> targets;  // by core, then output
  dsa::Level level = dsa::Level::kLocal;
  std::vector<Held> away;       // by output: the block of the GB or DDR
  bool away_is_staged = false;  // the block is of the GB, and what it holds goes on to DDR
  int64_t chunks = 1;
};

class RoomFinder {
 public:
  // `state` outlives this.
  explicit RoomFinder(MemoryState* state);

  // How the outputs of step `s` are distributed over cores.
  Factors BindingOf(int s, LayerWork* work);
  // Finds room for the parts `pieces` of cores: results stay in the LBs if they may; otherwise what lives longest makes
  // room, then results go out, then what the layer reads. RESOURCE_EXHAUSTED where an empty LB has no room for the
  // smallest tile.
  absl::Status FindRoom(int s, LayerWork* work, const std::vector<std::vector<Region>>& pieces, Placement* placement);

 private:
  // Results go to `to`; nullopt: they stay within the budget. Without `residents` no input is taken to be in the LB.
  Tiling TilingOf(int s, const LayerWork& work, const std::vector<std::unique_ptr<CoreWork>>& cores,
                  std::optional<dsa::Level> to, int64_t budget, bool residents);
  // False: there is no room, and none is taken. With `choosy`, room in which the layer would take much longer than with
  // an empty LB is none: what is in the LBs is not worth so much time.
  bool Place(int s, LayerWork* work, const std::vector<std::vector<Region>>& pieces, dsa::Level level, bool choosy,
             Placement* placement);
  // The cycles of a core from which on it is better to take results, or else what the layer reads, out of the LBs.
  double Affordable(int s, const LayerWork& work, const std::vector<std::unique_ptr<CoreWork>>& cores,
                    dsa::Level level);
  // Takes blocks for the outputs outside of the LBs: in the GB, or in DDR through the GB where that has room.
  void PlaceAway(int s, dsa::Level wanted, Placement* placement);

  MemoryState& state_;
  CoreRates rates_;
  double least_bytes_ = 0;  // of the last tiling that was tried
  // Steps that are alike have equal answers.
  std::map<std::vector<int64_t>, Factors> bindings_;
  std::map<std::vector<int64_t>, Tiling> tilings_;
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_FIND_ROOM_H_
