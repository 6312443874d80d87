// Builds the kernel of a program that is one routine: its operands are the arguments, its tasks the grid, and its
// scratch has block scope. Results that nobody reads are written nevertheless, into device-scope buffers.
#ifndef FUSION_COMPILER_SCHEDULE_SCHEDULE_ROUTINE_H_
#define FUSION_COMPILER_SCHEDULE_SCHEDULE_ROUTINE_H_

#include <map>

#include "absl/status/statusor.h"
#include "compiler/layout/layout.h"
#include "compiler/schedule/scheduled_fusion_block.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Fails with FAILED_PRECONDITION when an operand does not lie row-major.
absl::StatusOr<ScheduledFusionBlock> ScheduleRoutine(const te::Program& program,
                                                     const std::map<te::TensorId, Layout>& layouts);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SCHEDULE_ROUTINE_H_
