// Scheduling for devices whose tasks are work-groups with shared memory of a fixed size.
#ifndef FUSION_COMPILER_SCHEDULE_TARGETS_GPU_H_
#define FUSION_COMPILER_SCHEDULE_TARGETS_GPU_H_

#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {

const TargetStrategy& WorkGroupStrategy();   // several work-items share a task
const TargetStrategy& SingleItemStrategy();  // a task is one work-item, which computes in vectors as a core does

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TARGETS_GPU_H_
