// Scheduling for the cores of a processor, whose scratch is ordinary memory in their caches.
#ifndef FUSION_COMPILER_SCHEDULE_TARGETS_CPU_H_
#define FUSION_COMPILER_SCHEDULE_TARGETS_CPU_H_

#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {

const TargetStrategy& CpuStrategy();

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TARGETS_CPU_H_
