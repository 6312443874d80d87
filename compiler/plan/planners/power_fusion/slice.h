// Memory slices, the edges of GIR (PowerFusion §4), and how far two accesses to one tensor are synchronised (§5.1,
// Figure 5).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SLICE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SLICE_H_

#include <cstdint>
#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/plan/scope.h"
#include "compiler/te/ranges/bounds.h"
#include "runtime/base/tensor.h"

namespace fusion::power_fusion {

// The axis of the parallel units of a GIR-Graph: warps of a GPU, cores of a CPU (§4, "Parallel").
te::Axis UnitAxis(int64_t units);

// A device's parallel units.
struct Units {
  // Those that share the memory of block scope, where each is as many work-items as run in step; 1 where a unit has
  // such memory for itself.
  int64_t per_block = 1;
  double memory_bytes = 0;  // that a unit has near it; 0: unknown, and taken as enough
};
Units UnitsOf(const DeviceModel& device);

// The part of a tensor that each unit reads or writes: `num` runs of `width` contiguous elements, `stride` elements
// apart. The paper's pair of numbers says how memory is accessed. The box says which elements these are.
struct Pattern {
  int64_t num = 1, width = 1, stride = 0;
  te::Box box;           // origins are indices over UnitAxis
  bool in_order = true;  // false: the elements are visited in another order than they lie in (a transposition)
};
Pattern PatternOf(te::Box box, const Shape& shape, bool in_order = true);
bool SameBox(const te::Box& a, const te::Box& b);
std::string ToString(const Pattern& pattern);  // "4 x 16 / 64": num, width, stride

// The scope of the synchronisation between writing and reading a tensor of this shape:
// kLane where both patterns are the same, kWarp where each unit reads what it wrote, kBlock where units of one block
// (numbers that are the same when they are divided by `units_per_block`) exchange elements, else kDevice.
Scope SyncScope(const Pattern& written, const Pattern& read, const Shape& shape, int64_t units,
                int64_t units_per_block);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_SLICE_H_
