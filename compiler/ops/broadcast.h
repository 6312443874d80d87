// ONNX multidirectional broadcasting: shapes align at the right; an extent of 1 stretches.
#ifndef FUSION_COMPILER_OPS_BROADCAST_H_
#define FUSION_COMPILER_OPS_BROADCAST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

// The common shape of `shapes`, or INVALID_ARGUMENT naming the node and the two shapes that disagree.
absl::StatusOr<Shape> BroadcastShapes(const OpContext& context, const std::vector<Shape>& shapes);

// The common shape of inputs [begin, end) that are present.
absl::StatusOr<Shape> BroadcastInputs(const OpContext& context, int begin, int end);

// Coordinates in a tensor of shape `from` of the element that position `index` of a broadcast result reads:
// [4, 1] at (b, m, n) -> (m, 0). `index` may be longer than `from`, never shorter.
te::Builder::Idx BroadcastIndex(const Shape& from, const te::Builder::Idx& index);

// Table 2's "Elementwise w/ broadcast" row: One-to-Many where the input is stretched to `out`, else One-to-One. A
// constant of one element is a coefficient of the operator rather than a tensor that is read many times, and stays
// One-to-One.
MappingType BroadcastMapping(const OpContext& context, int input, const Shape& out);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_BROADCAST_H_
