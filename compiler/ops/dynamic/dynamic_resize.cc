#include "compiler/ops/dynamic/dynamic_resize.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using ecg::ValueId;

// Writes nodes as a formula. After a node that cannot be added, `status` holds the error and no further node is added.
class Formula {
 public:
  explicit Formula(ImportContext* import) : import_(import) {}

  ValueId operator()(const std::string& op, std::vector<ValueId> inputs, ecg::Attributes attrs = {}) {
    if (!status.ok()) return ecg::kNone;
    auto outputs = import_->AddBounded(op, std::move(inputs), std::move(attrs));
    status = outputs.status();
    return status.ok() ? (*outputs)[0] : ecg::kNone;
  }
  ValueId Number(double value) { return import_->AddConstant(Tensor::From(DType::kF64, {}, std::vector{value})); }
  ValueId As(DType dtype, ValueId x) {
    if (!status.ok() || import_->value(x).type.dtype == dtype) return x;
    ecg::Attributes to;
    to.Set("to", OnnxNumber(dtype));
    return (*this)("Cast", {x}, to);
  }
  ValueId Reshaped(ValueId x, const std::vector<int64_t>& shape) {
    return (*this)("Reshape", {x, import_->AddConstant(IntsTensor(shape))});
  }

  absl::Status status;

 private:
  ImportContext* import_;
};

struct Axis {
  int dim = 0;
  ValueId in = ecg::kNone, out = ecg::kNone;                              // i64 scalars
  ValueId inputs = ecg::kNone, outputs = ecg::kNone, scale = ecg::kNone;  // f64 scalars: in, out, outputs per input
};

// Returns the axes whose extents change or may change.
absl::StatusOr<std::vector<Axis>> MovingAxes(ImportContext& import, const OpContext& context, Formula& f) {
  const ecg::Node node = import.node();
  const ValueId x = node.inputs[0];
  std::vector<int64_t> dims(context.ShapeOf(0).size());
  std::iota(dims.begin(), dims.end(), 0);
  if (context.attrs.Has("axes")) dims = context.attrs.Ints("axes");
  ASSIGN_OR_RETURN(dims, DistinctAxes(context, dims, context.Rank(0)));
  const bool by_scales = context.Has(2) && NumElements(context.ShapeOf(2)) > 0;
  const int given = by_scales ? 2 : 3;
  if (!context.Has(given)) return context.Error("needs scales or sizes");
  if (NumElements(context.ShapeOf(given)) != static_cast<int64_t>(dims.size())) {
    return context.Error(absl::StrCat(by_scales ? "scales" : "sizes", " has ", NumElements(context.ShapeOf(given)),
                                      " values for ", dims.size(), " axes"));
  }
  std::vector<Axis> axes;
  std::vector<ValueId> sizes;
  if (!by_scales) {
    ASSIGN_OR_RETURN(sizes, Elements(import, node.inputs[given]));
  }
  const std::string policy = context.attrs.String("keep_aspect_ratio_policy", "stretch");
  const bool stretches = by_scales || policy == "stretch";
  for (size_t k = 0; k < dims.size(); ++k) {
    Axis axis;
    axis.dim = static_cast<int>(dims[k]);
    axis.in = import.Extent(x, axis.dim);
    axis.inputs = f.As(DType::kF64, axis.in);
    if (by_scales) {
      const Tensor* constant = context.Constant(given);
      if (constant != nullptr && constant->GetDouble(static_cast<int64_t>(k)) == 1) continue;
      const ValueId scale = f("Gather", {node.inputs[given], IntScalar(import, static_cast<int64_t>(k))});
      axis.scale = f.As(DType::kF64, scale);
      axis.out = f.As(DType::kI64, f("Floor", {f("Mul", {f.As(DType::kF32, axis.in), scale})}));
    } else {
      axis.out = sizes[k];
      const std::optional<int64_t> in = KnownInt(import, axis.in);
      if (stretches && (axis.out == axis.in || (in && in == KnownInt(import, axis.out)))) continue;
      axis.scale = f("Div", {f.As(DType::kF64, axis.out), f("Max", {axis.inputs, f.Number(1)})});
    }
    axes.push_back(axis);
  }
  if (!stretches && !axes.empty()) {
    ValueId scale = axes[0].scale;
    for (const Axis& axis : axes) scale = f(policy == "not_larger" ? "Min" : "Max", {scale, axis.scale});
    for (Axis& axis : axes) {
      axis.scale = scale;
      axis.out = f.As(DType::kI64, f("Floor", {f("Add", {f("Mul", {scale, axis.inputs}), f.Number(0.5)})}));
    }
  }
  for (Axis& axis : axes) axis.outputs = f.As(DType::kF64, axis.out);
  RETURN_IF_ERROR(f.status);
  return axes;
}

// Returns the positions of the outputs `o` (f64) in the input's coordinates, as `Origin` of resize_taps.cc does.
ValueId Origin(Formula& f, const ResizeSpec& spec, const Axis& axis, ValueId o) {
  const ValueId one = f.Number(1), half = f.Number(0.5);
  const ValueId length = f("Mul", {axis.scale, axis.inputs});
  if (spec.coordinates == "asymmetric") return f("Div", {o, axis.scale});
  if (spec.coordinates == "align_corners") {
    const ValueId along = f("Div", {f("Mul", {o, f("Sub", {axis.inputs, one})}), f("Sub", {length, one})});
    return f("Where", {f("Equal", {length, one}), f.Number(0), along});
  }
  const ValueId centre = f("Div", {f("Add", {o, half}), axis.scale});
  if (spec.coordinates == "tf_half_pixel_for_nn") return centre;
  if (spec.coordinates == "pytorch_half_pixel") {
    return f("Where", {f("Greater", {length, one}), f("Sub", {centre, half}), f.Number(0)});
  }
  if (spec.coordinates == "half_pixel_symmetric") {
    const ValueId adjustment = f("Div", {axis.outputs, length});
    const ValueId offset = f("Mul", {f("Div", {axis.inputs, f.Number(2)}), f("Sub", {one, adjustment})});
    return f("Sub", {f("Add", {offset, centre}), half});
  }
  return f("Sub", {centre, half});  // half_pixel
}

ValueId Nearest(Formula& f, const std::string& mode, ValueId x) {
  if (mode == "floor") return f("Floor", {x});
  if (mode == "ceil") return f("Ceil", {x});
  if (mode == "round_prefer_ceil") return f("Floor", {f("Add", {x, f.Number(0.5)})});
  return f("Ceil", {f("Sub", {x, f.Number(0.5)})});  // round_prefer_floor
}

// Resizes `x` along the axis, at its bounds: the result has `bound` elements there.
absl::StatusOr<ValueId> Resized(ImportContext& import, Formula& f, const ResizeSpec& spec, const Axis& axis,
                                int64_t bound, ValueId x) {
  ASSIGN_OR_RETURN(const ValueId outputs, Positions(import, {bound}, 0));
  ValueId at = Origin(f, spec, axis, f.As(DType::kF64, outputs));
  at = f("Max", {f("Min", {at, f.Number(1e15)}), f.Number(-1e15)});
  const ValueId one = f.Number(1), zero = f.Number(0), last = f("Sub", {axis.inputs, one});
  ecg::Attributes along;
  along.Set("axis", static_cast<int64_t>(axis.dim));
  const auto gather = [&](ValueId index) {
    const ValueId inside = f("Max", {f("Min", {index, last}), zero});
    return f("Gather", {x, f.As(DType::kI64, inside)}, along);
  };
  if (spec.mode == "nearest") return gather(Nearest(f, spec.nearest_mode, at));
  const ValueId before = f("Sub", {f("Ceil", {at}), one});
  const ValueId behind = f("Add", {before, one});
  const ValueId ratio = f("Sub", {at, before});
  ValueId weight_before = f("Sub", {one, ratio});
  ValueId weight_behind = f("Sub", {one, weight_before});
  if (spec.exclude_outside) {
    const auto kept = [&](ValueId index, ValueId weight) {
      const ValueId outside = f("Or", {f("Less", {index, zero}), f("Greater", {index, last})});
      return f("Where", {outside, zero, weight});
    };
    weight_before = kept(before, weight_before);
    weight_behind = kept(behind, weight_behind);
    const ValueId sum = f("Add", {weight_before, weight_behind});
    weight_before = f("Div", {weight_before, sum});
    weight_behind = f("Div", {weight_behind, sum});
  }
  RETURN_IF_ERROR(f.status);
  const ecg::ValueType type = import.value(x).type;
  std::vector<int64_t> column(type.shape.size() - static_cast<size_t>(axis.dim), 1);
  column[0] = bound;
  const auto weighted = [&](ValueId index, ValueId weight) {
    return f("Mul", {f.Reshaped(f.As(type.dtype, weight), column), gather(index)});
  };
  const ValueId first = weighted(before, weight_before);
  return f("Add", {first, weighted(behind, weight_behind)});
}

// Returns whether everything that the lowering needs is a constant.
bool IsStatic(ImportContext& import, const OpContext& context, const ResizeSpec& spec) {
  for (int i = spec.coordinates == "tf_crop_and_resize" ? 1 : 2; i < 4; ++i) {
    if (context.Has(i) && NumElements(context.ShapeOf(i)) > 0 && context.Constant(i) == nullptr) return false;
  }
  const ValueId x = import.node().inputs[0];
  if (!import.IsDynamic(x)) return true;
  // A scale of 1 leaves a dynamic extent as it is.
  const Tensor* scales = context.Constant(2);
  if (scales == nullptr || scales->num_elements() == 0) return false;
  const std::vector<int64_t> axes = context.attrs.Ints("axes");
  for (int64_t k = 0; k < scales->num_elements(); ++k) {
    const int64_t axis = axes.empty() ? k : k < static_cast<int64_t>(axes.size()) ? axes[k] : 0;
    const auto dim = static_cast<int>(axis < 0 ? axis + context.Rank(0) : axis);
    if (dim < 0 || dim >= context.Rank(0)) return true;  // inference refuses it
    if (scales->GetDouble(k) != 1 && import.IsDynamic(x, dim)) return false;
  }
  return true;
}

}  // namespace

absl::Status DynamicResize(ImportContext& import, const ResizeSpec& spec) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || IsStatic(import, context, spec)) return absl::OkStatus();
  const std::string refused = spec.mode == "cubic"                       ? "mode=cubic"
                              : spec.antialias                           ? "antialias=1"
                              : spec.coordinates == "tf_crop_and_resize" ? "tf_crop_and_resize"
                                                                         : "";
  if (!refused.empty()) {
    return context.Unsupported(
        absl::StrCat("sizes, scales or extents that are computed at run time are not supported with ", refused,
                     "; make them constants, or take mode nearest or linear"));
  }
  Formula f(&import);
  ASSIGN_OR_RETURN(const std::vector<Axis> axes, MovingAxes(import, context, f));
  ValueId x = import.node().inputs[0];
  const DType dtype = context.Type(0).dtype;
  std::vector<ValueId> extents = ExtentsOf(import, x);
  if (spec.mode != "nearest") x = f.As(IsFloat(dtype) ? ComputeType(dtype) : DType::kF32, x);
  RETURN_IF_ERROR(f.status);
  for (size_t k = axes.size(); k-- > 0;) {
    const Axis& axis = axes[k];
    ASSIGN_OR_RETURN(const int64_t bound,
                     UpperBound(import, context, axis.out, absl::StrCat("the size of dimension ", axis.dim)));
    ASSIGN_OR_RETURN(x, Resized(import, f, spec, axis, bound, x));
    extents[axis.dim] = axis.out;
  }
  x = f.As(dtype, x);
  RETURN_IF_ERROR(f.status);
  ASSIGN_OR_RETURN(x, import.WithExtents(x, std::move(extents)));
  import.ReplaceWith({x});
  return absl::OkStatus();
}

}  // namespace fusion::ops
