// ScheduledFusionBlock: what scheduling makes of a fusion block.
#ifndef FUSION_COMPILER_SCHEDULE_SCHEDULED_FUSION_BLOCK_H_
#define FUSION_COMPILER_SCHEDULE_SCHEDULED_FUSION_BLOCK_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/hand_overs.h"
#include "compiler/te/program/program.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct ScheduledFusionBlock {
  movement::Kernel kernel;
  std::vector<StageHandOver> hand_overs;  // between the stages of the form that was taken
  std::vector<std::vector<int>> phase_origins;  // parallel to the kernel's phases; empty for a routine
  std::string reason;                     // why the stages do not all share a task; empty where they do
  // OK, or why the fusion block should not be one kernel: a hand-over that nothing was asked of goes further than the
  // default allows. FAILED_PRECONDITION.
  absl::Status within;
  std::vector<ChoicePoint> choices;          // that the scheduler asked for, in order
  std::map<te::TensorId, Tensor> constants;  // made by the schedule: buffers of tensors that the program lacks
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SCHEDULED_FUSION_BLOCK_H_
