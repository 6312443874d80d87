// Which scalar bodies can be computed on vectors: the one table that schedules choose by and printers rely on. Vectors
// have lanes of 32 bits whatever the elements' type; narrow elements are widened when loaded and narrowed when stored.
#ifndef FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
#define FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_

#include <vector>

#include "compiler/te/scalar.h"

namespace fusion::movement {

// What a lane holds for elements of a type: kFloat an f32 (f32, f16, bf16), kInt an i32 (integers of at most 16 bits,
// i32), kMask 0 or -1 (bool). Other types have no lanes.
enum class LaneKind : uint8_t { kNone, kFloat, kInt, kMask };
LaneKind LaneKindOf(DType dtype);

// Can this node alone be evaluated lane by lane in vector registers, given that its operands can? Loads and conditions
// are not judged, only operations, casts and types.
bool HasVectorForm(const te::ScalarNode& node);

// A float that immediates clamp to what an i32 holds: the conversion of its lane is the conversion of the value.
bool FitsI32(const te::ScalarNode& s);

// Whether elements alone would call a function of the library, which takes longer than a vector of them.
bool CallsLibrary(const std::vector<te::Scalar>& scalars);

// Operands without lanes, a value with them (a mask from indices of 64 bits, positions compared): printers compute it
// a lane at a time, from its loads on, between operations on vectors.
bool IsLaneByLane(const te::ScalarNode& node);

// A load of which a vector is no run of memory: every second element, two runs in turns (`zipped`: lanes i and i + 2
// are neighbours), or through a border that cuts the lanes, `if inside then load else constant`, where the conditions
// bound the very elements that the lanes step over. Elements outside are not read.
struct SteppedLoad {
  const te::ScalarNode* load = nullptr;     // null: the value is no such load
  const te::ScalarNode* outside = nullptr;  // the constant; null: there is no border
  int64_t stride = 1;                       // elements from one lane to the next: 1 to 3
  bool zipped = false;                      // without a border
  te::Pred still;                           // conditions that do not move with the lanes
  // Elements inside, counted from the first lane's own: [largest of `from`, smallest of `to`).
  std::vector<te::Index> from, to;
};
SteppedLoad SteppedLoadOf(const te::ScalarNode& s, int axis_id);

// How the value of a body behaves along an axis.
struct AlongAxis {
  bool varies = false;       // it moves with the axis
  bool vectorizable = true;  // what moves has a vector form, and its loads are contiguous along the axis
  bool gatherable = true;    // what moves has a vector form, wherever its loads find their elements
  int contiguous_loads = 0, gathered_loads = 0;
  int stepped_loads = 0;  // SteppedLoadOf the axis, none of the others
  int strided_loads = 0;  // of these, with a stride or zipped
  int operations = 0;     // that move with the axis
};
AlongAxis AlongAxisOf(const te::Scalar& s, const te::Axis& axis, int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
