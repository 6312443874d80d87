// The addresses of rings (Ring in kernel.h) that a step reaches.
#ifndef FUSION_COMPILER_MOVEMENT_RING_ACCESSES_H_
#define FUSION_COMPILER_MOVEMENT_RING_ACCESSES_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Results outside of a step's lane limit are stored as zero, those outside of its store limit not at all. Element by
// element they are not computed. In vectors they are: what they read does not count, but has to lie in its buffer. Only
// what follows a reduction leaves out lanes that are not stored.
enum class MaskedLanes { kLeftOut, kComputed };

struct RingAccess {
  int buffer = -1;
  bool store = false;
  te::Index address;
  te::Pred conditions;  // under which it is reached: of loops, limits, and the way to a load
};

// The accesses of a step and of its shared-memory copies.
std::vector<RingAccess> RingAccessesOf(const Kernel& kernel, const Step& step, MaskedLanes masked);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_RING_ACCESSES_H_
