// Loop blocking of a map that walks its operand in another order than its result (a transposition, heads that change
// places with rows), so that both are read and written in runs while their pages are at hand.
#ifndef FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_
#define FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_

#include "compiler/cost/device_model.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// Where a load of `nest`, a map larger than the core's own memory, moves further with an inner axis than with an outer
// one, blocks of the inner axis may become a loop around the outer one (the choice `blocks`: cores with few or slow
// page walks want it, others lose by it). At most one axis is cut, in equal parts.
void BlockMap(const DeviceModel& device, AxisSource* axes, ChoiceLog* choices, Nest* nest);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_BLOCK_MAPS_H_
