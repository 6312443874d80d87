// Which scalar bodies can be computed on vectors: the one table by which schedules choose and on which printers rely.
// Vectors have lanes of 32 bits whatever the elements' type; narrow elements are widened when loaded and narrowed when
// stored.
#ifndef FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
#define FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_

#include <vector>

#include "compiler/te/scalar/scalar.h"

namespace fusion::movement {

// The form in which a lane holds an element type: kFloat an f32 (f32, f16, bf16), kInt an i32 (integers up to 16 bits,
// i32), kMask 0 or -1 (bool). Other types have no lanes.
enum class LaneKind : uint8_t { kNone, kFloat, kInt, kMask };
LaneKind LaneKindOf(DType dtype);

// Can this node alone be evaluated on vector registers, given that its operands can? This judges operations, casts and
// types, but neither loads nor conditions.
bool HasVectorForm(const te::ScalarNode& node);

// Is `s` a float that immediates clamp to the range of an i32? Its lane then converts to the same integer as the value.
bool FitsI32(const te::ScalarNode& s);

// Would single elements call a library function, which takes longer than a vector of them does?
bool CallsLibrary(const std::vector<te::Scalar>& scalars);

// Has the node operands without lanes, but a value with lanes (a mask from indices of 64 bits, positions compared)?
// Printers compute such a node, together with all that it is made of, a lane at a time between operations on vectors.
bool IsLaneByLane(const te::ScalarNode& node);

// An f32 load whose vector is not one run of memory but can be assembled from runs. There are three kinds:
// - with a stride of two or three elements;
// - two runs that alternate (`zipped`: lanes i and i + 2 are neighbours);
// - through a border that cuts the lanes, `if inside then load else constant`, where the conditions bound exactly the
//   elements that the lanes step over. Elements outside are not read.
struct SteppedLoad {
  const te::ScalarNode* load = nullptr;     // null: the value is no such load
  const te::ScalarNode* outside = nullptr;  // the constant; null: there is no border
  int64_t stride = 1;                       // elements from one lane to the next: 1 to 8
  bool zipped = false;                      // alternating runs; never with a border
  te::Pred still;                           // conditions that do not move with the lanes
  // The elements inside, counted from the first lane's own element: [largest of `from`, smallest of `to`).
  std::vector<te::Index> from, to;
};
SteppedLoad SteppedLoadOf(const te::ScalarNode& s, int axis_id);

// How the value of a body depends on an axis.
struct AlongAxis {
  bool varies = false;       // the value moves with the axis
  bool vectorizable = true;  // what moves has a vector form, and its loads are contiguous along the axis
  bool gatherable = true;    // what moves has a vector form, wherever its loads find their elements
  int contiguous_loads = 0, gathered_loads = 0;
  int stepped_loads = 0;  // loads by SteppedLoadOf; not counted among the others
  int strided_loads = 0;  // stepped loads with a stride or zipped
  int operations = 0;     // operations that move with the axis
};
AlongAxis AlongAxisOf(const te::Scalar& s, const te::Axis& axis, int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_VECTOR_FORM_H_
