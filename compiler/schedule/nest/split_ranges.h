// Index-set splitting: a map whose conditions cut an axis into ranges becomes one map for each range.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_SPLIT_RANGES_H_
#define FUSION_COMPILER_SCHEDULE_NEST_SPLIT_RANGES_H_

#include <functional>
#include <vector>

#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Makes a map whose conditions cut one of its axes into ranges (the parts of a Concat) several maps, one for each
// range, without the conditions. `worth` says whether a nest is large enough to stand alone; where a part is not, the
// nest stays whole. A nest without such a condition is returned as it is.
std::vector<Nest> SplitRanges(Nest nest, AxisSource* axes, const std::function<bool(const Nest&)>& worth);
// Makes a map whose conditions cut its innermost axis into ranges (the borders of a Pad) a map for each range, in
// order, however short some are; conditions on other axes stay. A map with no such cut, or with very many, is returned
// as it is.
std::vector<Nest> PeelInnermost(Nest nest, AxisSource* axes);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_SPLIT_RANGES_H_
