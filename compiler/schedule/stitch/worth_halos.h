// Which fusion blocks should compute halos in their tasks without being asked to?
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_WORTH_HALOS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_WORTH_HALOS_H_

#include "compiler/cost/device_model.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Returns true where a reduction reads windows of a tensor that another stage makes and that a core's own cache would
// not keep, so that separate kernels would move it through the outer caches. (Below that size a halo was measured to
// cost more than it saves.) Always false for devices of work-groups and of single work-items, where nothing was
// measured.
bool WorthHalos(const te::Program& program, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_WORTH_HALOS_H_
