// GridSample loads at positions that are computed at run time; AffineGrid computes such positions. A sample uses two
// small tables per axis (input index and weight), computed by maps, and one reduction over the taps. Indices are
// clamped, so that every position is safe.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Index;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

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

// x: [N, C, D1, .., Dr], grid: [N, O1, .., Or, r] with the position along Dr first.
absl::StatusOr<Types> InferGridSample(const OpContext& context, int) {
  RETURN_IF_ERROR(GridSpecOf(context).status());
  const Shape& x = context.ShapeOf(0);
  const Shape& grid = context.ShapeOf(1);
  if (x.size() < 3 || grid.size() != x.size() || grid.back() != static_cast<int64_t>(x.size()) - 2 || grid[0] != x[0] ||
      NumElements({x.begin() + 2, x.end()}) == 0 || !IsFloat(context.Type(0).dtype) ||
      !IsFloat(context.Type(1).dtype)) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), " and grid ", ShapeToString(grid),
                                      " must be float [N, C, D1, .., Dr] and [N, O1, .., Or, r]"));
  }
  Shape out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  return Types{{context.Type(0).dtype, out}};
}

// Returns x mirrored at lo and hi until it lies between them.
Scalar Reflect(const Scalar& x, double lo, double hi) {
  const DType dtype = x->dtype;
  if (hi <= lo) return te::Imm(dtype, lo);
  const Scalar period = te::Imm(dtype, 2 * (hi - lo));
  const Scalar phase = Call(Op::kMod, {x - te::Imm(dtype, lo), period});  // sign of the divisor: in [0, period)
  return te::Imm(dtype, lo) + te::Min(phase, period - phase);
}

// Returns the coordinate along one axis of the image, brought inside as the padding mode says.
Scalar GridCoordinate(const GridSpec& spec, const Scalar& normalised, int64_t extent) {
  const DType dtype = normalised->dtype;
  const double length = static_cast<double>(extent);
  const auto imm = [dtype](double v) { return te::Imm(dtype, v); };
  Scalar x = spec.align_corners ? (normalised + imm(1)) * imm((length - 1) / 2)
                                : ((normalised + imm(1)) * imm(length) - imm(1)) * imm(0.5);
  if (spec.mode == "nearest") x = Call(Op::kRound, {x});
  if (spec.padding == "border") {
    // A position up to half a pixel outside the image stays as it is; there each tap is clamped instead.
    const double margin = spec.align_corners ? 0 : 0.5;
    const Scalar outside =
        Call(Op::kOr, {Call(Op::kLt, {x, imm(-margin)}), Call(Op::kGt, {x, imm(length - 1 + margin)})});
    x = te::Select(outside, te::Max(te::Min(x, imm(length - 1)), imm(0)), x);
  }
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
  te::TensorId index, weight;  // [N, O1, .., Or, taps]
};

Tables GridTables(LowerContext& context, const GridSpec& spec, int component, int64_t extent) {
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(context.Type(1).dtype);
  Shape shape = context.ShapeOf(1);
  const te::TensorId coordinate = b.Map("coordinate", acc, {shape.begin(), shape.end() - 1}, [&](Idx i) {
    i.push_back(Index(component));
    return GridCoordinate(spec, te::Cast(acc, b.At(context.in[1], i)), extent);
  });
  shape.back() = spec.taps();
  const auto given = [&](const Idx& i) { return b.At(coordinate, {i.begin(), i.end() - 1}); };
  // Tap t reads floor(x) + t − (taps/2 − 1); nearest reads x itself.
  const auto position = [&](const Idx& i) {
    Scalar x = given(i);
    if (spec.mode == "nearest") return x;
    const Scalar offset = te::Cast(acc, te::FromIndex(i.back() - Index(spec.taps() / 2 - 1)));
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
    const Scalar x = given(i);
    Scalar weight = spec.mode == "nearest" ? te::Imm(acc, 1) : GridWeight(spec, Call(Op::kAbs, {x - at}));
    if (spec.padding != "zeros") return weight;
    const Scalar inside = Call(Op::kAnd, {Call(Op::kGe, {at, te::Imm(acc, 0)}),
                                          Call(Op::kLe, {at, te::Imm(acc, static_cast<double>(extent - 1))})});
    return te::Select(inside, weight, te::Imm(acc, 0));
  });
  return tables;
}

// Combines the taps of all axes into tables that every channel reads: the index of each tap in the row-major image, and
// the product of the weights.
Tables CombinedTaps(te::Builder* b, const std::vector<Tables>& axes, Shape shape, int64_t taps, const Shape& image) {
  const Shape each(axes.size(), taps);
  shape.back() = NumElements(each);
  const auto of_axis = [&](te::TensorId table, size_t d, const Idx& i) {
    Idx at(i.begin(), i.end() - 1);
    at.push_back(te::Delinearize(i.back(), each)[d]);
    return b->At(table, at);
  };
  Tables combined;
  combined.index = b->Map("tap", DType::kI64, shape, [&](const Idx& i) {
    Scalar place = of_axis(axes[0].index, 0, i);
    for (size_t d = 1; d < axes.size(); ++d) {
      place = place * te::ImmInt(DType::kI64, image[d]) + of_axis(axes[d].index, d, i);
    }
    return place;
  });
  combined.weight = b->Map("tap_weight", b->info(axes[0].weight).dtype, shape, [&](const Idx& i) {
    Scalar weight = of_axis(axes[0].weight, 0, i);
    for (size_t d = 1; d < axes.size(); ++d) weight = weight * of_axis(axes[d].weight, d, i);
    return weight;
  });
  return combined;
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
  const int spatial = context.Rank(0) - 2;
  std::vector<Tables> axes;
  axes.reserve(spatial);
  for (int d = 0; d < spatial; ++d) axes.push_back(GridTables(context, spec, spatial - 1 - d, x[d + 2]));
  const Shape image(x.begin() + 2, x.end());
  const Tables taps = spatial > 1 ? CombinedTaps(&b, axes, context.ShapeOf(1), spec.taps(), image) : axes[0];
  context.out = {b.Reduce("grid_sample", te::ReductionKind::kSum, type.dtype, acc, type.shape,
                          {b.info(taps.index).shape.back()}, [&](const Idx& i, const Idx& r) {
                            Idx at{i[0]};
                            at.insert(at.end(), i.begin() + 2, i.end());
                            at.push_back(r[0]);
                            Idx from = te::Delinearize(Index::Load(taps.index, at, {0, NumElements(image) - 1}), image);
                            from.insert(from.begin(), {i[0], i[1]});
                            return te::Cast(acc, b.At(taps.weight, at)) * te::Cast(acc, b.At(context.in[0], from));
                          })};
  return absl::OkStatus();
}

// theta: [N, r, r + 1], size = (N, C, D1, .., Dr); grid: [N, D1, .., Dr, r] = theta · (position of (dr, .., d1), 1)
absl::StatusOr<Types> InferAffineGrid(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  ASSIGN_OR_RETURN(const std::vector<int64_t> size, context.ConstantInts(1, "size"));
  const int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial < 1 || context.ShapeOf(0) != Shape{size[0], spatial, spatial + 1}) {
    return context.Error(absl::StrCat("theta ", ShapeToString(context.ShapeOf(0)), " and size ", ShapeToString(size),
                                      " must be [N, r, r+1] and (N, C, D1, .., Dr)"));
  }
  Shape out{size[0]};
  for (int64_t d = 0; d < spatial; ++d) {
    if (size[d + 2] < 0) return context.Error(absl::StrCat("size ", ShapeToString(size), " has a negative extent"));
    out.push_back(size[d + 2]);
  }
  out.push_back(spatial);
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerAffineGrid(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  const int64_t spatial = type.shape.back();
  const bool align_corners = context.attrs.Int("align_corners") != 0;
  DefineMap(context, 0, [&](const Idx& i) {
    const auto theta = [&](int64_t column) { return LoadCompute(b, context.in[0], {i[0], i.back(), Index(column)}); };
    Scalar sum = theta(spatial);
    for (int64_t j = 0; j < spatial; ++j) {
      const int64_t d = spatial - j;
      const double extent = static_cast<double>(type.shape[d]);
      const Scalar at = te::Cast(acc, te::FromIndex(i[d]));
      Scalar position = te::Imm(acc, 0);  // the only corner of an aligned axis is the centre
      if (!align_corners) {
        position = at * te::Imm(acc, 2 / extent) + te::Imm(acc, 1 / extent - 1);
      } else if (extent > 1) {
        position = at * te::Imm(acc, 2 / (extent - 1)) - te::Imm(acc, 1);
      }
      sum = sum + theta(j) * position;
    }
    return te::Cast(type.dtype, sum);
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> SamplingOps() {
  OpDef grid;
  grid.name = "GridSample";
  grid.min_inputs = grid.max_inputs = 2;
  grid.attrs = {{"align_corners", AttrKind::kInt},
                {"mode", AttrKind::kString, false, {"bilinear", "linear", "nearest", "bicubic", "cubic"}},
                {"padding_mode", AttrKind::kString, false, {"zeros", "border", "reflection"}}};
  grid.infer = InferGridSample;
  grid.lower = LowerGridSample;
  grid.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    const auto spec = GridSpecOf(context);
    const double taps = spec.ok() ? std::pow(static_cast<double>(spec->taps()), context.Rank(0) - 2) : 0;
    return 3 * taps * static_cast<double>(NumElements(outputs[0].shape));
  };

  OpDef affine;
  affine.name = "AffineGrid";
  affine.min_inputs = affine.max_inputs = 2;
  affine.roles = {InputRole::kData, InputRole::kExtents};
  affine.attrs = {{"align_corners", AttrKind::kInt}};
  affine.infer = InferAffineGrid;
  affine.lower = LowerAffineGrid;
  affine.flops = [](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    return 3 * static_cast<double>(context.Rank(1)) * static_cast<double>(NumElements(outputs[0].shape));
  };

  std::vector<OpDef> defs = {grid, affine};
  for (OpDef& def : defs) def.mapping = Always(MappingType::kManyToMany);
  return defs;
}

}  // namespace fusion::ops
