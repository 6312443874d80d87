// Schedules a stage alone: its phases share a grid with no other stage.
#ifndef FUSION_COMPILER_SCHEDULE_STAGE_PHASES_H_
#define FUSION_COMPILER_SCHEDULE_STAGE_PHASES_H_

#include "absl/status/status.h"
#include "compiler/schedule/kernel_draft.h"

namespace fusion {

// Adds the phases of a stage whose tensors have buffers. The first form that the stage can take is taken: a threadgroup
// tile, a prefix sum, column sums, a register tile, a reduction along a row, loops.
absl::Status AddStagePhases(const te::Te& te, KernelDraft* draft);

// Adds the stage as a call of a library of the target.
absl::Status AddLibraryPhase(const te::Te& te, KernelDraft* draft);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STAGE_PHASES_H_
