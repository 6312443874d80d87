// Loop blocking of a map that walks its operand in another order than its result (a transposition, heads that change
// places with rows), so that both are read and written in runs while their pages are at hand.
#ifndef FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_
#define FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_

#include "compiler/cost/device_model.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// Where a load of `nest`, a map larger than the core's own memory, moves further with an inner axis than with an outer
// one, blocks of the inner axis become a loop around the outer one. At most one axis is cut; its last block may be
// shorter. Where lanes change places with rows the blocks are of one vector, whose lines go past the caches: written
// one here and one there, each would be read first. The choice `blocks`: or no blocks, or long ones through the caches.
void BlockMap(const DeviceModel& device, AxisSource* axes, ChoiceLog* choices, Nest* nest);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_
