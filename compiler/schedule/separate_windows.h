// Windows that need no two-dimensional walk: the sum, maximum or minimum of a box is that of its rows, which neighbouring
// boxes share. A window of k × k then takes 2k steps for a result instead of k².
#ifndef FUSION_COMPILER_SCHEDULE_SEPARATE_WINDOWS_H_
#define FUSION_COMPILER_SCHEDULE_SEPARATE_WINDOWS_H_

#include <map>
#include <optional>

#include "compiler/schedule/layout.h"
#include "compiler/te/program.h"

namespace fusion {

struct SeparatedProgram {
  te::Program program;
  std::map<te::TensorId, Layout> layouts;  // those given, and the rows' own: that of the results, where it is theirs
};

// Folds of one f32 load over several axes, each along dimensions of its own, as one fold behind the other wherever that
// takes clearly fewer steps; sums are added in another order. nullopt: there is none.
std::optional<SeparatedProgram> SeparateWindows(te::Program program, std::map<te::TensorId, Layout> layouts);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SEPARATE_WINDOWS_H_
