// Streaming (non-temporal) stores: results that no cache will hold until they are read are written past the caches.
// Their lines are not fetched first, and what the caches hold stays there.
#ifndef FUSION_COMPILER_SCHEDULE_VECTOR_STREAMING_STORES_H_
#define FUSION_COMPILER_SCHEDULE_VECTOR_STREAMING_STORES_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"

namespace fusion {

// Sets movement::VectorMap::streaming_stores for the steps of `phase` that store whole vectors of such results, where
// the choice "streaming" says so. `phase` will become one of `kernel`'s. A measurement decides; the cost model cannot
// tell the two apart.
void UseStreamingStores(const DeviceModel& device, const movement::Kernel& kernel, ChoiceLog* choices,
                        movement::Phase* phase);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_VECTOR_STREAMING_STORES_H_
