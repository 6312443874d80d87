// Windows that slide along the innermost axis of a plain tensor (depthwise convolutions, pooling, convolutions to a few
// channels). Neighbouring results are the lanes of a vector where their elements are neighbours, too; a border test or
// a stride keeps these apart. A copy of the input with the border around it, in which elements a stride apart lie side
// by side, lets every tap read whole vectors.
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_COPY_WINDOWS_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_COPY_WINDOWS_H_

#include <functional>
#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Returns a program with such a copy in front of each reduction that
// - reads a window of one f32 tensor, in whatever layout,
// - through a border, or with a stride along the innermost axis of its plain result.
//
// Results that interleave (the phases of a transposed convolution) are computed phase by phase, and prefix reductions
// within parts of an axis part by part. Returns nullopt where
// no reduction reads such a window, or where a copy would be much larger than its tensor.
std::optional<te::Program> CopyWindows(te::Program program, const LayoutOf& layout_of, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_COPY_WINDOWS_H_
