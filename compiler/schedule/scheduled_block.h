// ScheduledBlock: what scheduling makes of a fusion block.
#ifndef FUSION_COMPILER_SCHEDULE_SCHEDULED_BLOCK_H_
#define FUSION_COMPILER_SCHEDULE_SCHEDULED_BLOCK_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/te/program/program.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct ScheduledBlock {
  movement::Kernel kernel;
  bool stitched = true;
  std::string reason;
  std::vector<ChoicePoint> choices;          // that the scheduler asked for, in order
  std::map<te::TensorId, Tensor> constants;  // made by the schedule: buffers of tensors that the program lacks
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SCHEDULED_BLOCK_H_
