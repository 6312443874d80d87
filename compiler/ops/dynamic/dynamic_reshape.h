// Reshape where the shape, or extents of the input, are computed at run time.
#ifndef FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESHAPE_H_
#define FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESHAPE_H_

#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// OpDef::dynamic of Reshape. As long as only the first dimension (behind those that both sides share) is dynamic,
// elements in row-major order at the extents are in row-major order at the bounds too, and the node stays a reshape.
// Any other reshape becomes a gather at addresses that are computed from the extents.
absl::Status DynamicReshape(ImportContext& import);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESHAPE_H_
