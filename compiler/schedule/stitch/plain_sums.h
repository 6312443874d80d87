// The plain sums of a convolution by minimal filtering: an infinity or a NaN of its input would be in every result of a
// tile (docs/decisions/0078-what-is-not-finite-stays-in-its-place.md).
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_PLAIN_SUMS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_PLAIN_SUMS_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/kernel_draft.h"

namespace fusion {

// Lets the tasks of the draft's last phase, whose stages begin with number `first` and have these boxes, compute the
// results of the draft's plain sums by them wherever a sum is infinite or NaN: the step in front of the last transform
// looks at its sums, and the last transform and the plain sums are alternatives. Changes nothing where
// - the phase does not hold both stages,
// - neither a register tile makes the sums nor all of them are in scratch, or steps run row by row,
// - the filter is packed in a way that does not hold each element once,
// - the scratch of a task would exceed `most_scratch_bytes`.
void AddPlainSums(const std::vector<PhysicalTe>& stages, const std::vector<te::Box>& boxes, int first,
                  int64_t most_scratch_bytes, KernelDraft* draft);

// The same for a kernel whose last transform stands behind a barrier: each task in front of it looks at its sums, and
// where one is infinite or NaN, the tasks behind it share out the plain sums of all results. Changes nothing where
// - the last transform is spread over several phases, or something reads its results in its tasks,
// - no register tile makes the sums, or steps run row by row,
// - the filter is packed in a way that does not hold each element once.
void AddPlainSumsBehindBarrier(KernelDraft* draft);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_PLAIN_SUMS_H_
