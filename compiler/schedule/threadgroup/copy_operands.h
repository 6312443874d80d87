// How the operands of a threadgroup tile come to shared memory: constants are packed in the order in which K-slices are
// copied, and the copy runs in vectors where it can.
#ifndef FUSION_COMPILER_SCHEDULE_THREADGROUP_COPY_OPERANDS_H_
#define FUSION_COMPILER_SCHEDULE_THREADGROUP_COPY_OPERANDS_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion {

// The row-major number of a point of the axes.
te::Index Linear(const std::vector<te::Axis>& axes);

// Does the index use every axis of `tested`?
bool UsesAxesOf(const te::Index& index, const te::Index& tested);

// Returns the operand with its constants packed in the order in which K-slices are copied (`box`), so that each slice
// is one contiguous run. Packed elements where `inside` does not hold are zero. A constant that other axes move, or
// that would grow too much, is read as it lies.
te::Scalar PackConstants(te::Scalar operand, const std::vector<te::Axis>& box, const te::Pred& inside,
                         movement::Kernel* kernel);

// Vectorises along the innermost loop where it is a whole number of vectors and all loads and stores begin at multiples
// of a vector; otherwise leaves the step as it is.
void VectorizeAligned(int64_t lanes, movement::Step* step);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_THREADGROUP_COPY_OPERANDS_H_
