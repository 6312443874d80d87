// Extents that depend on data and meet where an operator broadcasts, without being known to be equal.
#ifndef FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_
#define FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_

#include "absl/status/status.h"
#include "compiler/onnx/canonical_graph.h"

namespace fusion::onnx_import {

// Of operators that work element by element and broadcast (as their inference and their mapping say): decides at run
// time. The result's extent is the one that is not 1; a dimension of extent 1 is read at its first element throughout,
// within the bounds; and a check of the run says whether the extents are equal but for those of 1, under the conditions
// of the branch that is being imported. Replaces inputs of the node by values that have the same extents and bounds
// there. Nodes of which nothing meets, and of other operators, stay as they are.
absl::Status MeetExtents(ops::ImportContext& context, CanonicalGraph* canonical, ecg::Node* node);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_MEETING_EXTENTS_H_
