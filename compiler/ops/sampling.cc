// GridSample and RoiAlign: loads at positions that are computed at run time. Each is two small tables per axis (which
// input, with which weight), computed by maps, and one fold over the taps; indices are clamped, so that no position is
// unsafe.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/def_parts.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Index;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

// A float coordinate as an index in [0, extent). Clamped as a float first: a cast is defined only within range.
Scalar ClampedIndex(const Scalar& x, int64_t extent) {
  const DType dtype = x->dtype;
  const Scalar inside = te::Max(te::Min(x, te::Imm(dtype, static_cast<double>(extent - 1))), te::Imm(dtype, 0));
  const Scalar index = te::Cast(DType::kI64, inside);
  return te::Max(te::Min(index, te::ImmInt(DType::kI64, extent - 1)), te::ImmInt(DType::kI64, 0));
}

struct GridSpec {
  std::string mode, padding;
  bool align_corners = false;
  int64_t taps() const { return mode == "nearest" ? 1 : (mode == "cubic" ? 4 : 2); }
};

absl::StatusOr<GridSpec> GridSpecOf(const OpContext& context) {
  GridSpec spec{context.attrs.String("mode", "bilinear"), context.attrs.String("padding_mode", "zeros"),
                context.attrs.Int("align_corners") != 0};
  if (spec.mode == "bilinear") spec.mode = "linear";
  if (spec.mode == "bicubic") spec.mode = "cubic";
  if (spec.mode != "linear" && spec.mode != "cubic" && spec.mode != "nearest") {
    return context.Error(absl::StrCat("mode '", spec.mode, "' is unknown"));
  }
  if (spec.padding != "zeros" && spec.padding != "border" && spec.padding != "reflection") {
    return context.Error(absl::StrCat("padding_mode '", spec.padding, "' is unknown"));
  }
  return spec;
}

absl::StatusOr<Types> InferGridSample(const OpContext& context, int) {
  RETURN_IF_ERROR(GridSpecOf(context).status());
  const Shape& x = context.ShapeOf(0);
  const Shape& grid = context.ShapeOf(1);
  if (x.size() != 4 || grid.size() != 4 || grid[3] != 2 || grid[0] != x[0] || x[2] * x[3] == 0 ||
      !IsFloat(context.Type(0).dtype) || !IsFloat(context.Type(1).dtype)) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), " and grid ", ShapeToString(grid),
                                      " must be float [N, C, H, W] and [N, H_out, W_out, 2]"));
  }
  return Types{{context.Type(0).dtype, {x[0], x[1], grid[1], grid[2]}}};
}

// x mirrored at lo and hi until it lies between them.
Scalar Reflect(const Scalar& x, double lo, double hi) {
  const DType dtype = x->dtype;
  if (hi <= lo) return te::Imm(dtype, lo);
  const Scalar period = te::Imm(dtype, 2 * (hi - lo));
  const Scalar phase = Call(Op::kMod, {x - te::Imm(dtype, lo), period});  // sign of the divisor: in [0, period)
  return te::Imm(dtype, lo) + te::Min(phase, period - phase);
}

// Of output position (n, h, w): the coordinate along one axis of the image, brought inside as the padding mode says.
Scalar GridCoordinate(const GridSpec& spec, const Scalar& normalised, int64_t extent) {
  const DType dtype = normalised->dtype;
  const double length = static_cast<double>(extent);
  const auto imm = [dtype](double v) { return te::Imm(dtype, v); };
  Scalar x = spec.align_corners ? (normalised + imm(1)) * imm((length - 1) / 2)
                                : ((normalised + imm(1)) * imm(length) - imm(1)) * imm(0.5);
  if (spec.mode == "nearest") x = Call(Op::kRound, {x});
  if (spec.padding == "border") x = te::Max(te::Min(x, imm(length - 1)), imm(0));
  if (spec.padding == "reflection") {
    x = spec.align_corners ? Reflect(x, 0, length - 1) : Reflect(x, -0.5, length - 0.5);
  }
  return x;
}

Scalar GridWeight(const GridSpec& spec, const Scalar& distance) {
  const DType dtype = distance->dtype;
  const auto imm = [dtype](double v) { return te::Imm(dtype, v); };
  if (spec.mode == "linear") return te::Max(imm(1) - distance, imm(0));
  const double a = -0.75;
  const Scalar near = (imm(a + 2) * distance - imm(a + 3)) * distance * distance + imm(1);
  const Scalar far = ((imm(a) * distance - imm(5 * a)) * distance + imm(8 * a)) * distance - imm(4 * a);
  return te::Select(Call(Op::kLe, {distance, imm(1)}), near,
                    te::Select(Call(Op::kLt, {distance, imm(2)}), far, imm(0)));
}

struct Tables {
  te::TensorId index, weight;  // [N, H_out, W_out, taps]
};

Tables GridTables(LowerContext& context, const GridSpec& spec, int component, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  Shape shape = context.ShapeOf(1);
  const te::TensorId coordinate = b.Map("coordinate", acc, {shape[0], shape[1], shape[2]}, [&](Idx i) {
    i.push_back(Index(component));
    return GridCoordinate(spec, te::Cast(acc, b.At(context.in[1], i)), extent);
  });
  shape[3] = spec.taps();
  // Tap t reads floor(x) + t − (taps/2 − 1); nearest reads x itself.
  const auto position = [&](const Idx& i) {
    const Scalar x = b.At(coordinate, {i[0], i[1], i[2]});
    if (spec.mode == "nearest") return x;
    const Scalar offset = te::Cast(acc, te::FromIndex(i[3] - Index(spec.taps() / 2 - 1)));
    return Call(Op::kFloor, {x}) + offset;
  };
  Tables tables;
  tables.index = b.Map("index", DType::kI64, shape, [&](const Idx& i) {
    Scalar at = position(i);
    if (spec.padding == "reflection") {
      at = spec.align_corners ? Reflect(at, 0, static_cast<double>(extent - 1))
                              : Reflect(at, -0.5, static_cast<double>(extent) - 0.5);
    }
    return ClampedIndex(at, extent);
  });
  tables.weight = b.Map("weight", acc, shape, [&](const Idx& i) {
    const Scalar at = position(i);
    const Scalar x = b.At(coordinate, {i[0], i[1], i[2]});
    Scalar weight = spec.mode == "nearest" ? te::Imm(acc, 1) : GridWeight(spec, Call(Op::kAbs, {x - at}));
    if (spec.padding != "zeros") return weight;
    const Scalar inside = Call(Op::kAnd, {Call(Op::kGe, {at, te::Imm(acc, 0)}),
                                          Call(Op::kLe, {at, te::Imm(acc, static_cast<double>(extent - 1))})});
    return te::Select(inside, weight, te::Imm(acc, 0));
  });
  return tables;
}

absl::Status LowerGridSample(LowerContext& context) {
  ASSIGN_OR_RETURN(const GridSpec spec, GridSpecOf(context));
  const Shape& x = context.ShapeOf(0);
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const DType acc = ComputeType(type.dtype);
  const Tables columns = GridTables(context, spec, 0, x[3]);
  const Tables rows = GridTables(context, spec, 1, x[2]);
  context.out = {b.Reduce("grid_sample", te::FoldKind::kSum, type.dtype, acc, type.shape, {spec.taps(), spec.taps()},
                          [&](const Idx& i, const Idx& r) {
                            const Idx row = {i[0], i[2], i[3], r[0]}, column = {i[0], i[2], i[3], r[1]};
                            const Scalar weight = te::Cast(acc, b.At(rows.weight, row) * b.At(columns.weight, column));
                            const Scalar value =
                                b.At(context.in[0], {i[0], i[1], Index::Load(rows.index, row, {0, x[2] - 1}),
                                                     Index::Load(columns.index, column, {0, x[3] - 1})});
                            return weight * te::Cast(acc, value);
                          })};
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRoiAlign(const OpContext& context, int) {
  const Shape& x = context.ShapeOf(0);
  const Shape& rois = context.ShapeOf(1);
  const int64_t height = context.attrs.Int("output_height", 1), width = context.attrs.Int("output_width", 1);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != 4 || context.ShapeOf(2) != Shape{rois[0]} ||
      NumElements(x) == 0 || !IsFloat(context.Type(0).dtype) || context.Type(1).dtype != context.Type(0).dtype) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), ", rois ", ShapeToString(rois), " and batch_indices ",
                                      ShapeToString(context.ShapeOf(2)), " must be [N, C, H, W], [R, 4] and [R]"));
  }
  RETURN_IF_ERROR(ExpectInteger(context, 2, "batch_indices"));
  if (height < 1 || width < 1) return context.Error("output_height and output_width must be positive");
  const int64_t samples = context.attrs.Int("sampling_ratio");
  if (samples <= 0) return context.Unsupported("sampling_ratio=0 makes the work depend on the data; give the ratio");
  if (samples > 1024) return context.Error(absl::StrCat("sampling_ratio=", samples, " is out of range"));
  const std::string mode = context.attrs.String("mode", "avg");
  if (mode != "avg" && mode != "max") return context.Error(absl::StrCat("mode '", mode, "' is neither avg nor max"));
  return Types{{context.Type(0).dtype, {rois[0], x[1], height, width}}};
}

// [R, bins, samples, 2]: the two inputs around each sample point along one axis.
Tables RoiTables(LowerContext& context, int begin, int64_t bins, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  const int64_t rois = context.ShapeOf(1)[0];
  const int64_t samples = context.attrs.Int("sampling_ratio");
  const bool half = context.attrs.String("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const auto imm = [acc](double v) { return te::Imm(acc, v); };
  const te::TensorId coordinate = b.Map("coordinate", acc, {rois, bins, samples}, [&](const Idx& i) {
    const auto corner = [&](int k) {
      const Scalar given = te::Cast(acc, b.At(context.in[1], {i[0], Index(k)}));
      const Scalar scaled = given * imm(context.attrs.Float("spatial_scale", 1));
      return half ? scaled - imm(0.5) : scaled;
    };
    const Scalar first = corner(begin);
    Scalar length = corner(begin + 2) - first;
    if (!half) length = te::Max(length, imm(1));
    const Scalar bin = length / imm(static_cast<double>(bins));
    const Scalar sample = te::Cast(acc, te::FromIndex(i[2])) + imm(0.5);
    return first + te::Cast(acc, te::FromIndex(i[1])) * bin + sample * bin / imm(static_cast<double>(samples));
  });
  const Scalar last = imm(static_cast<double>(extent - 1));
  const auto clamped = [&](const Idx& i) {
    return te::Min(te::Max(b.At(coordinate, {i[0], i[1], i[2]}), imm(0)), last);
  };
  Tables tables;
  tables.index = b.Map("index", DType::kI64, {rois, bins, samples, 2}, [&](const Idx& i) {
    return ClampedIndex(Call(Op::kFloor, {clamped(i)}) + te::Cast(acc, te::FromIndex(i[3])), extent);
  });
  tables.weight = b.Map("weight", acc, {rois, bins, samples, 2}, [&](const Idx& i) {
    const Scalar given = b.At(coordinate, {i[0], i[1], i[2]});
    const Scalar x = clamped(i);
    const Scalar high = x - Call(Op::kFloor, {x});
    const Scalar weight =
        te::Select(Call(Op::kEq, {te::FromIndex(i[3]), te::ImmInt(DType::kI64, 0)}), imm(1) - high, high);
    const Scalar outside =
        Call(Op::kOr, {Call(Op::kLt, {given, imm(-1)}), Call(Op::kGt, {given, imm(static_cast<double>(extent))})});
    return te::Select(outside, imm(0), weight);
  });
  return tables;
}

absl::Status LowerRoiAlign(LowerContext& context) {
  const ecg::ValueType& type = context.output_types[0];
  const Shape& x = context.ShapeOf(0);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const DType acc = ComputeType(type.dtype);
  const int64_t samples = context.attrs.Int("sampling_ratio");
  const bool max = context.attrs.String("mode", "avg") == "max";
  const Tables rows = RoiTables(context, 1, type.shape[2], x[2]);
  const Tables columns = RoiTables(context, 0, type.shape[3], x[3]);
  const te::TensorId batch = b.Map("batch", DType::kI64, context.ShapeOf(2), [&](const Idx& i) {
    const Scalar given = te::Cast(DType::kI64, b.At(context.in[2], i));
    return te::Max(te::Min(given, te::ImmInt(DType::kI64, x[0] - 1)), te::ImmInt(DType::kI64, 0));
  });
  // Taps (row sample, column sample, row corner, column corner). The maximum is over weighted corners, as in ONNX.
  context.out = {b.Reduce(
      "roi_align", max ? te::FoldKind::kMax : te::FoldKind::kSum, type.dtype, acc, type.shape, {samples, samples, 2, 2},
      [&](const Idx& i, const Idx& r) {
        const Idx row = {i[0], i[2], r[0], r[2]}, column = {i[0], i[3], r[1], r[3]};
        const Scalar value = b.At(context.in[0], {Index::Load(batch, {i[0]}, {0, x[0] - 1}), i[1],
                                                  Index::Load(rows.index, row, {0, x[2] - 1}),
                                                  Index::Load(columns.index, column, {0, x[3] - 1})});
        return b.At(rows.weight, row) * b.At(columns.weight, column) * te::Cast(acc, value);
      },
      [&](const Idx&, const Scalar& sum) {
        return max ? sum : sum * te::Imm(acc, 1.0 / static_cast<double>(samples * samples));
      })};
  return absl::OkStatus();
}

// RoiAlign-10 has no half-pixel offset.
absl::Status NormalizeRoiAlign(ImportContext& import) {
  if (import.opset() < 16) {
    import.node().attrs.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> SamplingOps() {
  OpDef grid;
  grid.name = "GridSample";
  grid.min_inputs = grid.max_inputs = 2;
  grid.attrs = {{"align_corners", AttrKind::kInt}, {"mode", AttrKind::kString}, {"padding_mode", AttrKind::kString}};
  grid.infer = InferGridSample;
  grid.lower = LowerGridSample;
  grid.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    const auto spec = GridSpecOf(context);
    const double taps = spec.ok() ? static_cast<double>(spec->taps() * spec->taps()) : 0;
    return 3 * taps * static_cast<double>(NumElements(outputs[0].shape));
  };

  OpDef roi;
  roi.name = "RoiAlign";
  roi.min_inputs = roi.max_inputs = 3;
  roi.attrs = {{"coordinate_transformation_mode", AttrKind::kString},
               {"mode", AttrKind::kString},
               {"output_height", AttrKind::kInt},
               {"output_width", AttrKind::kInt},
               {"sampling_ratio", AttrKind::kInt},
               {"spatial_scale", AttrKind::kFloat}};
  roi.infer = InferRoiAlign;
  roi.lower = LowerRoiAlign;
  roi.normalize = NormalizeRoiAlign;
  roi.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    const double samples = static_cast<double>(context.attrs.Int("sampling_ratio"));
    return 12 * samples * samples * static_cast<double>(NumElements(outputs[0].shape));
  };

  std::vector<OpDef> defs = {grid, roi};
  for (OpDef& def : defs) def.mapping = Always(MappingType::kManyToMany);
  return defs;
}

}  // namespace fusion::ops
