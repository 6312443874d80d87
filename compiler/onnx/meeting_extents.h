// Extents that depend on data and meet where an operator broadcasts, without being known to be equal.
#ifndef FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_
#define FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_

#include "absl/status/status.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/partial_graph.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::onnx_import {

// Lets the run decide for an operator that works element by element and broadcasts (as its inference and its mapping
// show):
//   - The result's extent is the one that is not 1.
//   - A dimension of extent 1 is read at its first element throughout, within the bounds.
//   - A check of the run tests, under the conditions of the branch that is being imported, that all extents but those
//     of 1 are equal.
// Replaces inputs of the node by values that have equal extents and bounds there. A node of another operator, or one in
// which no such extents meet, stays as it is.
absl::Status MeetExtents(ops::ImportContext& context, PartialGraph* partial, ecg::Node* node);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_
