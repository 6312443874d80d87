// Loop tiling of a map that walks its operand in another order than its result (a transposition, or heads that change
// places with rows): tiles let it read and write in runs while the pages of both are still at hand.
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_BLOCKED_TRANSPOSE_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_BLOCKED_TRANSPOSE_H_

#include "compiler/cost/device_model.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Applies to a map larger than the core's own caches in which a load moves further with an inner axis than with an
// outer one. The inner axis is cut into tiles, and the loop over these tiles goes around the outer axis. At most one
// axis is cut; its last tile may be shorter.
//
// Where lanes change places with rows, a tile is one vector or one cache line wide, whichever is longer, and its lines
// are stored past the caches (non-temporal stores): ordinary stores to lines scattered like this would first read each
// line. The choice `transpose` offers, instead of that, no tiles, or (with such lanes) long tiles that are stored
// through the caches.
void TransposeInTiles(const DeviceModel& device, AxisSource* axes, ChoiceLog* choices, Nest* nest);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_BLOCKED_TRANSPOSE_H_
