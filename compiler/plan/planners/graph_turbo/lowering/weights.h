// The weights of layers while a program is made: which of them are in the GB, and for how long (GraphTurbo, OSDI 2023,
// section 4.4).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_WEIGHTS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_WEIGHTS_H_

#include <map>
#include <utility>
#include <vector>

#include "compiler/plan/planners/graph_turbo/lowering/emitter.h"
#include "compiler/plan/planners/graph_turbo/lowering/sequence.h"

namespace fusion::graph_turbo {

class Weights {
 public:
  struct Key {
    int op = 0, input = 0;
    auto operator<=>(const Key&) const = default;
  };

  // `emitter` outlives this.
  explicit Weights(Emitter* emitter) : emitter_(emitter) {}

  // A weight in DDR and the steps that read it, ascending.
  void Add(const Key& key, const Held& ddr, std::vector<int> steps);

  // Brings a weight into the GB for step `step` while step `now` is at hand. With `evict`, other weights that from now
  // on are read later than `step` make room. False: it is not in the GB.
  bool Bring(const Key& key, int now, int step, bool evict = true);
  // Makes room in the GB: takes away the weight whose next use is the last of all, but none that is read from `now` to
  // `step`. False: there is none.
  bool Evict(int now, int step);
  // After step `step`: takes away the weights that no later step reads.
  void Forget(int step);

  const Held& InDdr(const Key& key) const { return weights_.at(key).ddr; }
  // The parts in the GB, which together are the whole; empty: it is not there.
  const std::vector<Held>& InGlobal(const Key& key) const { return weights_.at(key).pieces; }

 private:
  struct Weight {
    Held ddr;
    std::vector<int> steps;
    std::vector<Held> pieces;
  };
  // The first step from `step` on that reads it; a large number if there is none.
  static int NextUse(const Weight& weight, int step);
  void Drop(Weight* weight);

  Emitter* emitter_;
  std::map<Key, Weight> weights_;
  std::map<int, std::vector<Key>> last_;  // by step: the weights that it is the last to read
};

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_WEIGHTS_H_
