#include "compiler/rewrite/window_functions.h"

#include <algorithm>
#include <string>

namespace fusion::rewrite::functions {

// Returns whether the convolution reads one pixel per output and reads every pixel.
absl::StatusOr<FunctionValue> Pointwise(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  const Shape& shape = value->type.shape;
  const auto all = [](const Ints& list, int64_t wanted) {
    return std::all_of(list.begin(), list.end(), [&](int64_t i) { return i == wanted; });
  };
  return Truth(shape.size() > 2 && all({shape.begin() + 2, shape.end()}, 1) && all(attrs->Ints("strides", {}), 1) &&
               all(attrs->Ints("pads", {}), 0));
}

// Returns the pads of a convolution with attributes `c` that replace a Pad with amounts P, over all axes, before it.
absl::StatusOr<FunctionValue> MergedPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* amounts, call.Value(1));
  if (attrs->String("auto_pad", "NOTSET") != "NOTSET") return DoesNotApply("automatic padding");
  if (!amounts->constant.has_value()) return DoesNotApply("amounts are not known");
  const auto rank = static_cast<int64_t>(amounts->constant->num_elements() / 2), spatial = rank - 2;
  if (spatial < 1) return DoesNotApply("no spatial axes");
  Ints pads = attrs->Ints("pads", Ints(2 * spatial, 0));
  if (static_cast<int64_t>(pads.size()) != 2 * spatial) return DoesNotApply("amounts do not fit");
  for (int64_t side = 0; side < 2; ++side) {
    for (int64_t axis = 0; axis < rank; ++axis) {
      const int64_t amount = amounts->constant->GetInt(side * rank + axis);
      if (amount < 0 || (axis < 2 && amount != 0)) return DoesNotApply("not padding of spatial axes");
      if (axis >= 2) pads[side * spatial + axis - 2] += amount;
    }
  }
  return FunctionValue(pads);
}

// Returns the amounts of a Pad over all axes of X with which a convolution with attributes `c` needs no pads itself.
absl::StatusOr<FunctionValue> ConvPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Attributes* attrs, call.Attrs(0));
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(1));
  const std::string automatic = attrs->String("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return DoesNotApply("automatic padding");
  const auto rank = static_cast<int64_t>(value->type.shape.size()), spatial = rank - 2;
  if (spatial < 1) return DoesNotApply("no spatial axes");
  const Ints pads = attrs->Ints("pads", Ints(2 * spatial, 0));
  if (static_cast<int64_t>(pads.size()) != 2 * spatial) return DoesNotApply("pads do not fit");
  Ints amounts(2 * rank, 0);
  for (int64_t axis = 0; axis < spatial && automatic == "NOTSET"; ++axis) {
    amounts[axis + 2] = pads[axis];
    amounts[rank + axis + 2] = pads[spatial + axis];
  }
  return FunctionValue(amounts);
}

absl::StatusOr<FunctionValue> NoPads(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (value->type.shape.size() < 3) return DoesNotApply("no spatial axes");
  return FunctionValue(Ints(2 * (value->type.shape.size() - 2), 0));
}

// Returns the number of elements of one filter of W.
absl::StatusOr<FunctionValue> Taps(const Call& call) {
  ASSIGN_OR_RETURN(const ecg::Value* value, call.Value(0));
  if (value->type.shape.empty() || value->type.shape[0] == 0) return DoesNotApply("no filters");
  const int64_t taps = NumElements(value->type.shape) / value->type.shape[0];
  return FunctionValue(static_cast<double>(taps));
}

}  // namespace fusion::rewrite::functions
