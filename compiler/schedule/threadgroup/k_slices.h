// How the K-slices of a product's operands lie in a work-group's shared memory (threadgroup_tile.h), and in which order
// they are copied there: along the reduction or along the operand, with padding against bank conflicts, or in layout
// blocks where the device multiplies them where they lie.
#ifndef FUSION_COMPILER_SCHEDULE_THREADGROUP_K_SLICES_H_
#define FUSION_COMPILER_SCHEDULE_THREADGROUP_K_SLICES_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/threadgroup/multiplier.h"
#include "compiler/te/index/index.h"

namespace fusion {

// Elements of a K-slice with `k_slice` steps along the reduction and `side` rows or columns. `along_k_slice`:
// neighbours of the operand in memory are neighbours along the reduction.
int64_t KSliceElements(const Multiplier& by, int64_t k_slice, int64_t side, bool along_k_slice);

// The address of an operand's element in its K-slice.
te::Index PlaceInKSlice(const Multiplier& by, const te::Axis& of_side, const te::Axis& in_k_slice, bool along_k_slice);

// The axes along which a K-slice is copied to shared memory: those of the side (rows or columns) and of the depth
// (along the reduction). Each is split in two where the slice lies in layout blocks.
class KSliceAxes {
 public:
  std::vector<te::Axis> order;  // the order of memory, where the slice has no padding

  KSliceAxes(const Multiplier& by, const te::Axis& of_side, const te::Axis& in_k_slice, AxisSource* axes);

  // The index that replaces an axis of the side or the depth; null for any other axis.
  const te::Index* Find(const te::Axis& axis) const;
  // The loops of the copy, in the order in which the operand lies in memory.
  std::vector<te::Axis> Loops(bool packed, bool along_k_slice) const;

 private:
  te::Axis of_side_, in_k_slice_;
  std::vector<te::Axis> side_, depth_;
  te::Index row_, column_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_THREADGROUP_K_SLICES_H_
