// Results that no cache will hold until they are read: written past the caches, their lines are not fetched first, and
// what the caches hold stays.
#ifndef FUSION_COMPILER_SCHEDULE_STORE_PAST_H_
#define FUSION_COMPILER_SCHEDULE_STORE_PAST_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"

namespace fusion {

// Steps of `phase`, which is one of `kernel`'s to be, that store whole vectors of such results: movement::Step::
// past_caches, where the choice "past" says so. A measurement decides; the cost model knows nothing of it.
void StorePastCaches(const DeviceModel& device, const movement::Kernel& kernel, ChoiceLog* choices,
                     movement::Phase* phase);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STORE_PAST_H_
