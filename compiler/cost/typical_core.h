// The core that tools plan for when no device is given: rates and caches of one typical core. Plans for it differ only
// with the instruction set, and are the same on every machine.
#ifndef FUSION_COMPILER_COST_TYPICAL_CORE_H_
#define FUSION_COMPILER_COST_TYPICAL_CORE_H_

#include "compiler/cost/device_model.h"

namespace fusion {

// With AVX-512.
DeviceModel TypicalCore();

// With the instructions of a CPU, so that the CPU can run what is built for it.
DeviceModel TypicalCoreLike(const DeviceModel& cpu);

// The device with typical rates, which follow from its fingerprint, instead of the measured ones: of a CPU those of the
// typical core. Decisions about what to measure use it, because they must not change from one registration to the next.
DeviceModel WithTypicalRates(const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TYPICAL_CORE_H_
