// Windows that slide along the innermost axis of a plain tensor (depthwise convolutions, pooling, convolutions to a few
// channels): neighbouring results are the lanes of a vector where neighbouring elements are, but a border test or a
// stride keeps them apart. With a copy of the input that has its border around it, and in which elements a stride apart
// lie beside each other, every tap reads whole vectors.
#ifndef FUSION_COMPILER_SCHEDULE_COPY_WINDOWS_H_
#define FUSION_COMPILER_SCHEDULE_COPY_WINDOWS_H_

#include <functional>
#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest.h"
#include "compiler/te/program.h"

namespace fusion {

// A program with such a copy in front of every fold that reads a window of one f32 tensor, in whatever layout, through
// a border or with a stride along the innermost axis of its plain result; and in which results that interleave are
// computed phase by phase. nullopt: there is none, or the copies would be much larger than what they are copies of.
std::optional<te::Program> CopyWindows(te::Program program, const LayoutOf& layout_of, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_COPY_WINDOWS_H_
