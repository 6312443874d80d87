// Resize where its sizes, its scales or an extent that it changes are computed at run time.
#ifndef FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESIZE_H_
#define FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESIZE_H_

#include "compiler/ops/registry/op_def.h"
#include "compiler/ops/shared/resize_taps.h"

namespace fusion::ops {

// OpDef::dynamic of Resize. For each axis, adds the formula of resize_taps.h as nodes of the graph: positions, indices
// and weights are vectors in double precision; the result gathers and adds, last axis first. UNIMPLEMENTED for modes
// whose taps this does not cover (cubic, antialias, tf_crop_and_resize).
absl::Status DynamicResize(ImportContext& import, const ResizeSpec& spec);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_DYNAMIC_DYNAMIC_RESIZE_H_
