// Axis arguments: negative ones count from the end.
#ifndef FUSION_COMPILER_OPS_AXES_H_
#define FUSION_COMPILER_OPS_AXES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ops/op_def.h"

namespace fusion::ops {

// `axis` in [0, rank), or INVALID_ARGUMENT naming the node.
absl::StatusOr<int> NormalizeAxis(const OpContext& context, int64_t axis, int rank);

// Sorted and distinct; INVALID_ARGUMENT when out of range or repeated.
absl::StatusOr<std::vector<int>> NormalizeAxes(const OpContext& context, const std::vector<int64_t>& axes, int rank);

// Opsets that gave `attribute` as attribute: moves it to constant i64 input `input` (1-D), absent inputs in between.
void AttributeToInput(ImportContext& context, const char* attribute, int input);

// `shape` as [outer, extent, inner] around one axis.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
};
AxisView ViewAlong(const Shape& shape, int axis);

// Extents of `shape` without `axes` (sorted) / at `axes`.
Shape ShapeWithout(const Shape& shape, const std::vector<int>& axes);
Shape ShapeAt(const Shape& shape, const std::vector<int>& axes);
// The inverse: coordinates with `reduced[k]` at axes[k] (sorted), the others of `kept` in order.
te::Builder::Idx MergeIndex(const te::Builder::Idx& kept, const te::Builder::Idx& reduced,
                            const std::vector<int>& axes);
// Coordinates `index` without those at `axes` (sorted).
te::Builder::Idx IndexWithout(const te::Builder::Idx& index, const std::vector<int>& axes);

}  // namespace fusion::ops

#endif  // FUSION_COMPILER_OPS_AXES_H_
