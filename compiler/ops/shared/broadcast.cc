#include "compiler/ops/shared/broadcast.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fusion::ops {

absl::StatusOr<Shape> BroadcastShapes(const OpContext& context, const std::vector<Shape>& shapes) {
  Shape result;
  for (const Shape& shape : shapes) {
    if (shape.size() > result.size()) result.insert(result.begin(), shape.size() - result.size(), 1);
    const size_t offset = result.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d) {
      int64_t& extent = result[offset + d];
      if (shape[d] == 1 || shape[d] == extent) continue;
      if (extent != 1) {
        return context.Error(
            absl::StrCat("shapes ", ShapeToString(result), " and ", ShapeToString(shape), " do not broadcast"));
      }
      extent = shape[d];
    }
  }
  return result;
}

absl::StatusOr<Shape> BroadcastInputs(const OpContext& context, int begin, int end) {
  std::vector<Shape> shapes;
  for (int i = begin; i < end; ++i) {
    if (context.Has(i)) shapes.push_back(context.ShapeOf(i));
  }
  return BroadcastShapes(context, shapes);
}

te::Builder::Idx BroadcastIndex(const Shape& from, const te::Builder::Idx& index) {
  const size_t offset = index.size() - from.size();
  te::Builder::Idx result;
  result.reserve(from.size());
  for (size_t d = 0; d < from.size(); ++d) result.push_back(from[d] == 1 ? te::Index(0) : index[offset + d]);
  return result;
}

MappingType BroadcastMapping(const OpContext& context, int input, const Shape& out) {
  const int64_t elements = NumElements(context.ShapeOf(input));
  if (elements == NumElements(out)) return MappingType::kOneToOne;
  if (elements == 1 && context.Constant(input) != nullptr) return MappingType::kOneToOne;
  return MappingType::kOneToMany;
}

}  // namespace fusion::ops
