// Helpers for axis arguments. A negative axis counts from the end.
#ifndef FUSION_COMPILER_OPS_SHARED_AXES_H_
#define FUSION_COMPILER_OPS_SHARED_AXES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ops {

// Returns `axis` in [0, rank), or INVALID_ARGUMENT naming the node.
absl::StatusOr<int> NormalizeAxis(const OpContext& context, int64_t axis, int rank);

// Returns the axes sorted and distinct; INVALID_ARGUMENT when one is out of range or repeated.
absl::StatusOr<std::vector<int>> NormalizeAxes(const OpContext& context, const std::vector<int64_t>& axes, int rank);

// For opsets in which `attribute` was an attribute: moves it to constant i64 input `input` (1-D). Inputs in between are
// absent.
void AttributeToInput(ImportContext& context, const char* attribute, int input);

// `shape` as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};
AxisView ViewAlong(const Shape& shape, int axis);

// The extents of `shape` without `axes` (sorted), and those at `axes`.
Shape ShapeWithout(const Shape& shape, const std::vector<int>& axes);
Shape ShapeAt(const Shape& shape, const std::vector<int>& axes);
// The inverse of the two: returns coordinates with `reduced[k]` at axes[k] (sorted) and those of `kept` in order
// elsewhere.
te::Builder::Idx MergeIndex(const te::Builder::Idx& kept, const te::Builder::Idx& reduced,
                            const std::vector<int>& axes);
// Returns the coordinates `index` without those at `axes` (sorted).
te::Builder::Idx IndexWithout(const te::Builder::Idx& index, const std::vector<int>& axes);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_SHARED_AXES_H_
