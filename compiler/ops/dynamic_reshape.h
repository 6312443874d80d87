// Reshape where extents of the input or the shape itself are computed at run time.
#ifndef FUSION_COMPILER_OPS_DYNAMIC_RESHAPE_H_
#define FUSION_COMPILER_OPS_DYNAMIC_RESHAPE_H_

#include "compiler/ops/op_def.h"

namespace fusion::ops {

// OpDef::dynamic of Reshape. What is row-major at the extents is row-major at the bounds too as long as only the first
// dimension (behind those that both sides share) is dynamic: such a reshape stays one. Any other becomes a gather at
// addresses that are computed from the extents.
absl::Status DynamicReshape(ImportContext& import);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_DYNAMIC_RESHAPE_H_
