// Multiplier: the unit of arithmetic of a threadgroup tile.
#ifndef FUSION_COMPILER_SCHEDULE_THREADGROUP_MULTIPLIER_H_
#define FUSION_COMPILER_SCHEDULE_THREADGROUP_MULTIPLIER_H_

#include "compiler/movement/kernel.h"
#include "runtime/base/dtype.h"

namespace fusion {

// The unit of a work-group's multiplication: elements, or fragments that several work-items hold together.
struct Multiplier {
  movement::FragmentProduct product;
  DType dtype = DType::kF32;  // type of the operands' K-slices
  double fmas = 1;            // what a product of two elements costs a work-item, in FMAs
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_THREADGROUP_MULTIPLIER_H_
