// Resize (and Upsample, its old name): every output reads a few inputs per axis through tables known at compile time.
// Axes are resized one after another. Few taps are written out, so that the result is a map that fuses like any other;
// many taps become a reduction.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/dynamic/dynamic_resize.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/index_table.h"
#include "compiler/ops/shared/resize_taps.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

constexpr int64_t kMaxUnrolledTaps = 8;
// Taps of all outputs of an axis, which are tables while the operator is compiled.
constexpr int64_t kMaxTapElements = 1 << 24;

ResizeSpec SpecOf(const ecg::Attributes& attrs) {
  ResizeSpec spec;
  spec.mode = attrs.String("mode", spec.mode);
  spec.coordinates = attrs.String("coordinate_transformation_mode", spec.coordinates);
  spec.nearest_mode = attrs.String("nearest_mode", spec.nearest_mode);
  spec.cubic_coeff_a = attrs.Float("cubic_coeff_a", spec.cubic_coeff_a);
  spec.exclude_outside = attrs.Int("exclude_outside") != 0;
  spec.antialias = attrs.Int("antialias") != 0;
  return spec;
}

// Returns a constant input of floats, empty where it is absent or has no elements.
absl::StatusOr<std::vector<double>> ConstantFloats(const OpContext& context, int input, const char* name) {
  std::vector<double> values;
  if (!context.Has(input) || NumElements(context.ShapeOf(input)) == 0) return values;
  const Tensor* tensor = context.Constant(input);
  if (tensor == nullptr) {
    return context.Unsupported(absl::StrCat("input '", name, "' is computed at run time; it must be a constant"));
  }
  for (int64_t k = 0; k < tensor->num_elements(); ++k) values.push_back(tensor->GetDouble(k));
  return values;
}

absl::StatusOr<std::vector<ResizeAxis>> Axes(const OpContext& context) {
  const Shape& in = context.ShapeOf(0);
  std::vector<int64_t> axes = context.attrs.Ints("axes");
  if (!context.attrs.Has("axes")) {
    for (size_t d = 0; d < in.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  }
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  ASSIGN_OR_RETURN(const std::vector<double> scales, ConstantFloats(context, 2, "scales"));
  std::vector<double> roi;
  if (context.attrs.String("coordinate_transformation_mode") == "tf_crop_and_resize") {
    ASSIGN_OR_RETURN(roi, ConstantFloats(context, 1, "roi"));
    if (roi.size() != 2 * axes.size()) return context.Error("tf_crop_and_resize needs roi with two values an axis");
  }
  std::vector<ResizeAxis> result;
  for (int64_t extent : in) result.push_back({extent, extent, 1});
  const auto check_count = [&](size_t given, const char* name) {
    return given == axes.size()
               ? absl::OkStatus()
               : context.Error(absl::StrCat(name, " has ", given, " values for ", axes.size(), " axes"));
  };
  if (!scales.empty()) {
    RETURN_IF_ERROR(check_count(scales.size(), "scales"));
    for (size_t k = 0; k < axes.size(); ++k) {
      ResizeAxis& axis = result[axes[k]];
      if (!(scales[k] > 0) || scales[k] > 1e9)
        return context.Error(absl::StrCat("scale ", scales[k], " is out of range"));
      axis.scale = scales[k];
      axis.out = static_cast<int64_t>(std::floor(static_cast<float>(axis.in) * static_cast<float>(scales[k])));
    }
  } else {
    if (!context.Has(3)) return context.Error("needs scales or sizes");
    ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, context.ConstantInts(3, "sizes"));
    RETURN_IF_ERROR(check_count(sizes.size(), "sizes"));
    const std::string policy = context.attrs.String("keep_aspect_ratio_policy", "stretch");
    std::vector<double> ratios;
    for (size_t k = 0; k < axes.size(); ++k) {
      if (sizes[k] < 0) return context.Error(absl::StrCat("size ", sizes[k], " is negative"));
      ratios.push_back(static_cast<double>(sizes[k]) / static_cast<double>(std::max<int64_t>(in[axes[k]], 1)));
    }
    for (size_t k = 0; k < axes.size(); ++k) {
      ResizeAxis& axis = result[axes[k]];
      axis.out = sizes[k];
      axis.scale = ratios[k];
      if (policy == "stretch") continue;
      axis.scale = policy == "not_larger" ? *std::min_element(ratios.begin(), ratios.end())
                                          : *std::max_element(ratios.begin(), ratios.end());
      axis.out = static_cast<int64_t>(std::floor(axis.scale * static_cast<double>(axis.in) + 0.5));
    }
  }
  for (size_t k = 0; k < axes.size() && !roi.empty(); ++k) {
    result[axes[k]].roi_begin = roi[k];
    result[axes[k]].roi_end = roi[k + axes.size()];
  }
  for (const ResizeAxis& axis : result) {
    if (axis.in == 0 && axis.out > 0) return context.Error("resizes an empty axis");
    if (axis.out > (int64_t{1} << 28)) return context.Error(absl::StrCat("an axis of ", axis.out, " is out of range"));
  }
  return result;
}

bool IsResized(const ResizeAxis& axis) {
  return axis.in != axis.out || axis.scale != 1 || axis.roi_begin != 0 || axis.roi_end != 1;
}

absl::StatusOr<Types> InferResize(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Axes(context));
  const ResizeSpec spec = SpecOf(context.attrs);
  Shape out;
  for (const ResizeAxis& axis : axes) {
    out.push_back(axis.out);
    if (!IsResized(axis) ||
        TapsPerOutput(spec, axis) * static_cast<double>(axis.out) <= static_cast<double>(kMaxTapElements)) {
      continue;
    }
    return context.Unsupported(absl::StrCat("resizing an axis of ", axis.in, " elements to ", axis.out, " takes ",
                                            static_cast<int64_t>(TapsPerOutput(spec, axis)),
                                            " inputs for each output, more than ", kMaxTapElements, " in all"));
  }
  return Types{{context.Type(0).dtype, out}};
}

// The taps of one axis, as tables of indices and weights.
struct AxisTables {
  int64_t taps = 1;
  bool copies = true;
  bool unrolled = true;
  // Unrolled: one 1-D table per tap. As a reduction: one table over [tap, out].
  std::vector<IndexTable> index;
  std::vector<te::TensorId> weight;

  Index At(const Index& tap, int64_t t, const Index& o) { return unrolled ? index[t]({o}) : index[0]({tap, o}); }
  Scalar Weight(const te::Builder& b, const Index& tap, int64_t t, const Index& o) const {
    return unrolled ? b.At(weight[t], {o}) : b.At(weight[0], {tap, o});
  }
};

AxisTables MakeTables(te::Builder* b, const ResizeTaps& taps, int64_t out, DType acc) {
  AxisTables tables;
  tables.taps = static_cast<int64_t>(taps.index.size());
  tables.copies = taps.Copies();
  tables.unrolled = tables.taps <= kMaxUnrolledTaps;
  const auto add = [&](const Shape& shape, const std::vector<int64_t>& index, const std::vector<double>& weight) {
    tables.index.emplace_back(b, "resize_index", shape, index);
    if (!tables.copies) tables.weight.push_back(b->Constant("resize_weight", Tensor::From(acc, shape, weight)));
  };
  if (tables.unrolled) {
    for (int64_t t = 0; t < tables.taps; ++t) add({out}, taps.index[t], taps.weight[t]);
    return tables;
  }
  std::vector<int64_t> index;
  std::vector<double> weight;
  for (int64_t t = 0; t < tables.taps; ++t) {
    index.insert(index.end(), taps.index[t].begin(), taps.index[t].end());
    weight.insert(weight.end(), taps.weight[t].begin(), taps.weight[t].end());
  }
  add({tables.taps, out}, index, weight);
  return tables;
}

absl::Status LowerResize(LowerContext& context) {
  ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Axes(context));
  const ResizeSpec spec = SpecOf(context.attrs);
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const int rank = static_cast<int>(axes.size());
  const DType acc = spec.mode == "nearest" ? type.dtype : IsFloat(type.dtype) ? ComputeType(type.dtype) : DType::kF32;
  std::vector<ResizeTaps> taps(rank);
  std::vector<AxisTables> tables(rank);
  int last = -1;  // the last axis that moves; -1: none moves
  for (int d = 0; d < rank; ++d) {
    const ResizeAxis& axis = axes[d];
    if (!IsResized(axis)) continue;
    taps[d] = MakeResizeTaps(spec, axis);
    tables[d] = MakeTables(&b, taps[d], axis.out, acc);
    last = d;
  }
  const auto moves = [&](int d) { return !taps[d].index.empty(); };
  // Positions beyond the image take the extrapolation value.
  const auto extrapolate = [&](const Idx& i, const Scalar& value) {
    te::Pred inside;
    for (int d = 0; d < rank; ++d) {
      if (!moves(d)) continue;
      if (taps[d].inside_begin > 0) inside.push_back({i[d], te::Cmp::kGe, Index(taps[d].inside_begin)});
      if (taps[d].inside_end < axes[d].out) inside.push_back({i[d], te::Cmp::kLt, Index(taps[d].inside_end)});
    }
    if (inside.empty()) return value;
    return te::If(inside, value, te::Imm(value->dtype, context.attrs.Float("extrapolation_value")));
  };
  // Axes are resized one by one, the outermost first. The numbers of taps then add up instead of multiplying, and until
  // the innermost axis has its turn, vector lanes along it read adjacent elements.
  te::TensorId from = context.in[0];
  Shape shape = context.ShapeOf(0);
  const auto tap = [&](int d, const Idx& i, const Index& folded, int64_t t) {
    Idx at = i;
    at[d] = tables[d].At(folded, t, i[d]);
    const Scalar x = te::Cast(acc, b.At(from, at));
    return tables[d].copies ? x : tables[d].Weight(b, folded, t, i[d]) * x;
  };
  const auto sum_of_taps = [&](int d, const Idx& i) {
    Scalar sum = tap(d, i, Index(0), 0);
    for (int64_t t = 1; t < tables[d].taps; ++t) sum = sum + tap(d, i, Index(0), t);
    return sum;
  };
  for (int d = 0; d < last; ++d) {
    if (!moves(d)) continue;
    shape[d] = axes[d].out;
    from = tables[d].unrolled ? b.Map("resized", acc, shape, [&](const Idx& i) { return sum_of_taps(d, i); })
                              : b.Reduce("resized", te::ReductionKind::kSum, acc, acc, shape, {tables[d].taps},
                                         [&](const Idx& i, const Idx& r) { return tap(d, i, r[0], 0); });
  }
  if (last >= 0 && !tables[last].unrolled) {
    context.out = {b.Reduce(
        "resize", te::ReductionKind::kSum, type.dtype, acc, type.shape, {tables[last].taps},
        [&](const Idx& i, const Idx& r) { return tap(last, i, r[0], 0); }, extrapolate)};
    return absl::OkStatus();
  }
  DefineMap(context, 0, [&](const Idx& i) {
    const Scalar value = last >= 0 ? sum_of_taps(last, i) : te::Cast(acc, b.At(from, i));
    return te::Cast(type.dtype, extrapolate(i, value));
  });
  return absl::OkStatus();
}

// Resize-10 and Upsample take (X, scales) and use coordinates without half pixels.
void MakeAsymmetric(ecg::Node& node) {
  node.op = "Resize";
  node.attrs.Set("coordinate_transformation_mode", std::string("asymmetric"));
  node.attrs.Set("nearest_mode", std::string("floor"));
  if (node.attrs.String("mode") == "bilinear" || node.attrs.String("mode") == "trilinear") {
    node.attrs.Set("mode", std::string("linear"));
  }
  if (node.inputs.size() == 2) node.inputs.insert(node.inputs.begin() + 1, ecg::kNone);
}

absl::Status NormalizeResize(ImportContext& import) {
  if (import.opset() < 11) MakeAsymmetric(import.node());
  return absl::OkStatus();
}

absl::Status NormalizeUpsample(ImportContext& import) {
  ecg::Node& node = import.node();
  if (node.attrs.Has("scales") && node.inputs.size() == 1) {
    const std::vector<double> scales = node.attrs.Floats("scales");
    node.inputs.push_back(import.AddConstant(Tensor::From(DType::kF32, {static_cast<int64_t>(scales.size())}, scales)));
    node.attrs.Erase("scales");
  }
  MakeAsymmetric(node);
  return absl::OkStatus();
}

double ResizeFlops(const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  const auto axes = Axes(context);
  const std::string mode = context.attrs.String("mode", "nearest");
  if (!axes.ok() || mode == "nearest") return 0;
  double taps = 1;
  for (const ResizeAxis& axis : *axes) taps *= axis.in == axis.out ? 1 : (mode == "cubic" ? 4 : 2);
  return 2 * taps * static_cast<double>(NumElements(outputs[0].shape));
}

}  // namespace

std::vector<OpDef> ResizeOps() {
  OpDef resize;
  resize.name = "Resize";
  resize.max_inputs = 4;
  resize.roles = {InputRole::kData, InputRole::kData, InputRole::kScales, InputRole::kExtents};
  resize.attrs = {
      {"antialias", AttrKind::kInt},
      {"axes", AttrKind::kInts},
      {"coordinate_transformation_mode",
       AttrKind::kString,
       false,
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
        "tf_half_pixel_for_nn", "tf_crop_and_resize"}},
      {"cubic_coeff_a", AttrKind::kFloat},
      {"exclude_outside", AttrKind::kInt},
      {"extrapolation_value", AttrKind::kFloat},
      {"keep_aspect_ratio_policy", AttrKind::kString, false, {"stretch", "not_larger", "not_smaller"}},
      {"mode", AttrKind::kString, false, {"nearest", "linear", "cubic"}},
      {"nearest_mode", AttrKind::kString, false, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}}};
  resize.mapping = Always(MappingType::kOneToMany);
  resize.infer = InferResize;
  resize.lower = LowerResize;
  resize.flops = ResizeFlops;
  resize.normalize = NormalizeResize;
  resize.dynamic = [](ImportContext& import) { return DynamicResize(import, SpecOf(import.node().attrs)); };

  OpDef upsample = resize;
  upsample.name = "Upsample";
  upsample.normalize = NormalizeUpsample;

  return {resize, upsample};
}

}  // namespace fusion::ops
