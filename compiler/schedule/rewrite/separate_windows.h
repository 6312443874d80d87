// Separable windows: the sum, maximum or minimum of a box is that of the results of its rows, and neighbouring boxes
// share rows. A window of k × k then takes 2k steps for a result instead of k².
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_SEPARATE_WINDOWS_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_SEPARATE_WINDOWS_H_

#include <map>
#include <optional>

#include "compiler/layout/layout.h"
#include "compiler/te/program/program.h"

namespace fusion {

struct SeparatedProgram {
  te::Program program;
  std::map<te::TensorId, Layout> layouts;  // the given ones; the rows' tensor gets that of the results where it fits
};

// Splits each reduction of one f32 load over several axes, where each axis walks dimensions of its own, into reductions
// one behind the other, wherever that takes clearly fewer steps. Sums are then added in another order. Returns nullopt
// where there is no such reduction.
std::optional<SeparatedProgram> SeparateWindows(te::Program program, std::map<te::TensorId, Layout> layouts);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_SEPARATE_WINDOWS_H_
