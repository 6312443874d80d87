// AccountForBuilt: what kernels take of a device, as their toolchain allotted it, beside what planners were told.
#ifndef FUSION_COMPILER_PIPELINE_BUILT_RESOURCES_H_
#define FUSION_COMPILER_PIPELINE_BUILT_RESOURCES_H_

#include <string>
#include <vector>

#include "compiler/api/compile_account.h"
#include "compiler/bundle/kernel_files.h"
#include "compiler/bundle/program_layout.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// Adds `built` to each fusion block of `account`'s plan.json whose kernel's binary says what it takes (a cubin does):
// registers and bytes of a frame of a work-item, shared memory of a work-group, and the occupancy that follows. A
// kernel of several functions has those of the one with the least occupancy. `place` is the first launch's text; the
// others follow. A binary that cannot be read says nothing: its device will refuse it.
void AccountForBuilt(const std::vector<PlannedLaunch>& launches, const KernelTexts& texts,
                     std::vector<KernelTexts::Place>::const_iterator place, const std::vector<std::string>& binaries,
                     const DeviceModel& device, CompileAccount* account);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_BUILT_RESOURCES_H_
