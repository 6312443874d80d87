// Buffer allocation (GraphTurbo, section 4.3): each output of each operator of each instance gets a level. A buffer is
// live from the step that makes it to its last use. Where the live buffers of a level exceed its capacity, the one that
// lives longest is declared one level out, in the GB and then in DDR.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_PLACE_BUFFERS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_PLACE_BUFFERS_H_

#include <cstdint>
#include <vector>

#include "compiler/plan/planners/graph_turbo/binding.h"

namespace fusion::graph_turbo {

struct Capacity {
  int cores = 1;            // c
  double local_bytes = 0;   // of one core's LB, for activations
  double global_bytes = 0;  // of the GB
};

enum class BufferUse : uint8_t {
  kOutput,    // of an operator of an instance
  kMovement,  // of a concatenation, copy or redistribution
  kInput,     // a part of the model's input, loaded for an instance
};

struct PlacedBuffer {
  BufferUse use = BufferUse::kOutput;
  int tensor = kNone;
  int instance = kNone;  // that makes it, or for which it is moved or loaded
  double bytes = 0;
  int cores = 1;                 // over which its bytes are spread, in LBs
  int64_t birth = 0, death = 0;  // steps, both inclusive
  BufferScope scope = BufferScope::kLocal;
};

// Sets the scopes of buffers, which come with those that Algorithm 4 declares, in any order.
void SpillLongestLived(const Capacity& capacity, std::vector<PlacedBuffer>* buffers);

// The buffers of a schedule. A step is an operator of an instance or a movement, in the order in which they run.
std::vector<PlacedBuffer> PlaceBuffers(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                       const InstanceGraph& instances, const std::vector<int>& order,
                                       const std::vector<Binding>& bindings, const std::vector<Movement>& movements,
                                       const Capacity& capacity);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_PLACE_BUFFERS_H_
