#include "compiler/ops/shared/axes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

bool Contains(const std::vector<int>& axes, size_t axis) {
  return std::binary_search(axes.begin(), axes.end(), static_cast<int>(axis));
}

}  // namespace

absl::StatusOr<int> NormalizeAxis(const OpContext& context, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return context.Error(absl::StrCat("axis ", axis, " is outside a tensor of rank ", rank));
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::StatusOr<std::vector<int>> NormalizeAxes(const OpContext& context, const std::vector<int64_t>& axes, int rank) {
  std::vector<int> result;
  for (int64_t axis : axes) {
    ASSIGN_OR_RETURN(const int normal, NormalizeAxis(context, axis, rank));
    result.push_back(normal);
  }
  std::sort(result.begin(), result.end());
  const auto repeated = std::adjacent_find(result.begin(), result.end());
  if (repeated != result.end()) return context.Error(absl::StrCat("axis ", *repeated, " is given twice"));
  return result;
}

void AttributeToInput(ImportContext& context, const char* attribute, int input) {
  ecg::Node& node = context.node();
  if (!node.attrs.Has(attribute)) return;
  const std::vector<int64_t> values = node.attrs.Ints(attribute);
  node.attrs.Erase(attribute);
  if (static_cast<int>(node.inputs.size()) <= input) node.inputs.resize(input + 1, ecg::kNone);
  const ecg::ValueId id = context.AddConstant(Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values));
  context.node().inputs[input] = id;
}

AxisView ViewAlong(const Shape& shape, int axis) {
  return {NumElements({shape.begin(), shape.begin() + axis}), shape[axis],
          NumElements({shape.begin() + axis + 1, shape.end()})};
}

Shape ShapeWithout(const Shape& shape, const std::vector<int>& axes) {
  Shape result;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!Contains(axes, d)) result.push_back(shape[d]);
  }
  return result;
}

Shape ShapeAt(const Shape& shape, const std::vector<int>& axes) {
  Shape result;
  for (int axis : axes) result.push_back(shape[axis]);
  return result;
}

te::Builder::Idx MergeIndex(const te::Builder::Idx& kept, const te::Builder::Idx& reduced,
                            const std::vector<int>& axes) {
  te::Builder::Idx result;
  size_t next_kept = 0, next_reduced = 0;
  for (size_t d = 0; d < kept.size() + reduced.size(); ++d) {
    result.push_back(Contains(axes, d) ? reduced[next_reduced++] : kept[next_kept++]);
  }
  return result;
}

te::Builder::Idx IndexWithout(const te::Builder::Idx& index, const std::vector<int>& axes) {
  te::Builder::Idx result;
  for (size_t d = 0; d < index.size(); ++d) {
    if (!Contains(axes, d)) result.push_back(index[d]);
  }
  return result;
}

}  // namespace fusion::ops
