// The range of elements that an affine address reaches while loops end at their limits.
#ifndef FUSION_COMPILER_MOVEMENT_REACHED_RANGE_H_
#define FUSION_COMPILER_MOVEMENT_REACHED_RANGE_H_

#include <optional>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/te/index/index.h"

namespace fusion::movement {

// Returns the least and the greatest value that were found of an affine address; both are reached. They are the true
// ends where each limit is affine and at most one axis that is not limited itself occurs in the limits, which is the
// case of a dimension cut into tiles; with more of them an end further out may be missed. Returns nothing if no point
// is known to be reached.
std::optional<te::Interval> ReachedRange(const te::Index& address, const std::vector<Loop>& loops);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_REACHED_RANGE_H_
