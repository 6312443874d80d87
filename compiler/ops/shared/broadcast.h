// ONNX multidirectional broadcasting: shapes align at the right, and an extent of 1 stretches.
#ifndef FUSION_COMPILER_OPS_SHARED_BROADCAST_H_
#define FUSION_COMPILER_OPS_SHARED_BROADCAST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// Returns the common shape of `shapes`, or INVALID_ARGUMENT naming the node and the two shapes that disagree.
absl::StatusOr<Shape> BroadcastShapes(const OpContext& context, const std::vector<Shape>& shapes);

// The same for those of inputs [begin, end) that are present.
absl::StatusOr<Shape> BroadcastInputs(const OpContext& context, int begin, int end);

// Returns the coordinates that the element at position `index` of a broadcast result has in an input of shape `from`:
// for [4, 1], (b, m, n) -> (m, 0). `index` may be longer than `from`, never shorter.
te::Builder::Idx BroadcastIndex(const Shape& from, const te::Builder::Idx& index);

// Table 2's row "Elementwise w/ broadcast": One-to-Many where the input is stretched to `out`, else One-to-One. A
// constant of one element stays One-to-One: it is a coefficient of the operator rather than a tensor that is read many
// times.
MappingType BroadcastMapping(const OpContext& context, int input, const Shape& out);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_BROADCAST_H_
