// How the slices of a product's operands lie in the memory of a group (group_tile.h), and in which order they are
// brought in: along the fold with padding against bank conflicts, or in blocks where the device multiplies them as they
// lie.
#ifndef FUSION_COMPILER_SCHEDULE_GROUP_SLICES_H_
#define FUSION_COMPILER_SCHEDULE_GROUP_SLICES_H_

#include <cstdint>
#include <vector>

#include "compiler/schedule/group_tile.h"
#include "compiler/schedule/nest.h"
#include "compiler/te/index.h"

namespace fusion {

// Elements of a slice of `slice` along the fold by `side` rows or columns. `along_slice`: the operand's neighbours in
// memory are neighbours along the fold.
int64_t SliceElements(const Multiplier& by, int64_t slice, int64_t side, bool along_slice);

// Where an element of an operand lies in its slice.
te::Index PlaceInSlice(const Multiplier& by, const te::Axis& of_side, const te::Axis& in_slice, bool along_slice);

// The axes along which a slice is brought in: those of the side and of the depth, each split in two where it lies in
// blocks.
class SliceAxes {
 public:
  std::vector<te::Axis> order;  // of memory, where the slice has no padding

  SliceAxes(const Multiplier& by, const te::Axis& of_side, const te::Axis& in_slice, AxisSource* axes);

  // What stands for an axis of the side or the depth; null for any other.
  const te::Index* Find(const te::Axis& axis) const;
  // As the operand lies in memory.
  std::vector<te::Axis> Loops(bool packed, bool along_slice) const;

 private:
  te::Axis of_side_, in_slice_;
  std::vector<te::Axis> side_, depth_;
  te::Index row_, column_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_GROUP_SLICES_H_
