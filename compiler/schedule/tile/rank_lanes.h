// Ranks the axes of a reduction that may become the lanes of a register tile's vectors.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_RANK_LANES_H_
#define FUSION_COMPILER_SCHEDULE_TILE_RANK_LANES_H_

#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/tile/tile_operands.h"

namespace fusion {

struct LaneChoice {
  te::Axis axis;
  double cycles = 0;  // per element of the result
};

// Returns the possible axes, best first; none that is estimated much slower than the best. An axis is possible where no
// condition uses it, it fills a quarter of a vector, no task cuts it, and some operand moves with it. `in_task`: the
// tiles run in one task, which then packs an operand once for all of them.
std::vector<LaneChoice> RankLanes(const Nest& nest, const std::vector<Operand>& loads, int64_t lanes,
                                  const movement::Kernel& kernel, const PortModel& ports, bool in_task);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_RANK_LANES_H_
