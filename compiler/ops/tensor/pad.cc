// Pad in all modes and CenterCropPad. A constant border is a padded load. The other modes are integer maps, one te per
// axis, whose affine pieces (border, interior, border) become lazy choices.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/index_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Types = std::vector<ecg::ValueType>;

// A map with more pieces than this becomes an index table instead of a choice between pieces.
constexpr size_t kMaxPieces = 5;

struct Border {
  int64_t before = 0, after = 0;  // negative: cropped
};

absl::StatusOr<std::vector<Border>> Borders(const OpContext& context) {
  const int rank = context.Rank(0);
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, context.ConstantInts(1, "pads"));
  std::vector<int64_t> axes;
  if (context.Has(3)) {
    ASSIGN_OR_RETURN(axes, context.ConstantInts(3, "axes"));
  } else {
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  }
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, rank));
  if (pads.size() != 2 * axes.size()) {
    return context.Error(
        absl::StrCat("pads has ", pads.size(), " values, two for each of ", axes.size(), " axes are required"));
  }
  std::vector<Border> borders(rank);
  for (size_t k = 0; k < axes.size(); ++k) borders[axes[k]] = {pads[k], pads[k + axes.size()]};
  return borders;
}

absl::StatusOr<Types> InferPad(const OpContext& context, int) {
  const std::string mode = context.attrs.String("mode", "constant");
  ASSIGN_OR_RETURN(const std::vector<Border> borders, Borders(context));
  if (context.Has(2)) {
    if (context.Type(2).dtype != context.Type(0).dtype || NumElements(context.ShapeOf(2)) != 1) {
      return context.Error(absl::StrCat("constant_value is ", DTypeName(context.Type(2).dtype),
                                        ShapeToString(context.ShapeOf(2)), ", one ", DTypeName(context.Type(0).dtype),
                                        " is required"));
    }
  }
  const Shape& in = context.ShapeOf(0);
  Shape out;
  for (size_t d = 0; d < in.size(); ++d) {
    constexpr int64_t kMost = int64_t{1} << 40;
    if (borders[d].before > kMost || borders[d].after > kMost) return context.Error("a pad is larger than 2^40");
    out.push_back(in[d] + borders[d].before + borders[d].after);
    if (out[d] < 0)
      return context.Error(absl::StrCat("pads remove more than axis ", d, " of ", ShapeToString(in), " has"));
    if (mode != "constant" && in[d] == 0 && out[d] > 0) {
      return context.Error(absl::StrCat("axis ", d, " is empty, mode '", mode, "' has nothing to repeat"));
    }
  }
  return Types{{context.Type(0).dtype, out}};
}

int64_t SourceOf(const std::string& mode, int64_t i, int64_t extent) {
  if (mode == "edge" || extent == 1) return std::clamp<int64_t>(i, 0, extent - 1);
  const int64_t period = mode == "wrap" ? extent : 2 * (extent - 1);
  const int64_t phase = ((i % period) + period) % period;
  return phase < extent ? phase : period - phase;
}

te::TensorId PadAxis(te::Builder& b, te::TensorId x, int axis, const Border& border, const std::string& mode) {
  Shape shape = b.info(x).shape;
  const int64_t extent = shape[axis];
  shape[axis] = extent + border.before + border.after;
  std::vector<int64_t> source(shape[axis]);
  for (int64_t i = 0; i < shape[axis]; ++i) source[i] = SourceOf(mode, i - border.before, extent);
  const std::vector<Run> runs = AffineRuns(source);
  return b.Map("pad", b.info(x).dtype, shape, [&](const te::Builder::Idx& i) {
    te::Builder::Idx in = i;
    if (runs.size() > kMaxPieces) {
      in[axis] = IndexTable(&b, "pad", {shape[axis]}, source)({i[axis]});
      return b.At(x, in);
    }
    std::vector<int64_t> begins;
    std::vector<Scalar> pieces;
    for (const Run& run : runs) {
      in[axis] = (i[axis] - Index(run.begin)) * run.step + Index(run.first);
      begins.push_back(run.begin);
      pieces.push_back(b.At(x, in));
    }
    return ByRange(i[axis], begins, pieces);
  });
}

absl::Status LowerPad(LowerContext& context) {
  ASSIGN_OR_RETURN(const std::vector<Border> borders, Borders(context));
  const std::string mode = context.attrs.String("mode", "constant");
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  if (mode != "constant" && NumElements(type.shape) > 0) {
    te::TensorId x = context.in[0];
    for (int d = 0; d < context.Rank(0); ++d) {
      if (borders[d].before != 0 || borders[d].after != 0) x = PadAxis(b, x, d, borders[d], mode);
    }
    context.out = {x};
    return absl::OkStatus();
  }
  DefineMap(context, 0, [&](const te::Builder::Idx& i) -> Scalar {
    te::Builder::Idx in;
    te::Pred inside;
    for (size_t d = 0; d < i.size(); ++d) {
      in.push_back(i[d] - Index(borders[d].before));
      if (borders[d].before > 0) inside.push_back({in[d], te::Cmp::kGe, Index(0)});
      if (borders[d].after > 0) inside.push_back({in[d], te::Cmp::kLt, Index(context.ShapeOf(0)[d])});
    }
    const Tensor* value = context.Constant(2);
    if (context.Has(2) && value == nullptr) {
      Scalar pad = b.At(context.in[2], te::Builder::Idx(context.Rank(2), Index(0)));
      if (NumElements(context.ShapeOf(0)) == 0) return pad;
      return te::If(inside, b.At(context.in[0], in), pad);
    }
    Scalar pad = te::Imm(type.dtype, 0);
    if (value != nullptr) {
      pad = IsFloat(type.dtype) ? te::Imm(type.dtype, value->GetDouble(0)) : te::ImmInt(type.dtype, value->GetInt(0));
    }
    if (NumElements(context.ShapeOf(0)) == 0) return pad;
    return te::Load(context.in[0], type.dtype, in, inside.empty() ? nullptr : pad);
  });
  return absl::OkStatus();
}

// Pad-2 carries pads and value as attributes.
absl::Status NormalizePad(ImportContext& import) {
  AttributeToInput(import, "paddings", 1);
  AttributeToInput(import, "pads", 1);
  ecg::Node& node = import.node();
  if (node.attrs.Has("value")) {
    const ecg::Value* x = import.input(0);
    if (x != nullptr && node.inputs.size() == 2) {
      Tensor value(x->type.dtype, {});
      value.SetDouble(0, node.attrs.Float("value"));
      node.inputs.push_back(import.AddConstant(std::move(value)));
    }
    node.attrs.Erase("value");
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> TargetShape(const OpContext& context) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> extents, context.ConstantInts(1, "shape"));
  std::vector<int64_t> axes = context.attrs.Ints("axes");
  if (!context.attrs.Has("axes")) {
    for (int d = 0; d < context.Rank(0); ++d) axes.push_back(d);
  }
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  if (extents.size() != axes.size()) {
    return context.Error(absl::StrCat("shape has ", extents.size(), " values for ", axes.size(), " axes"));
  }
  Shape out = context.ShapeOf(0);
  for (size_t k = 0; k < axes.size(); ++k) out[axes[k]] = extents[k];
  return out;
}

absl::StatusOr<Types> InferCenterCropPad(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const Shape shape, TargetShape(context));
  for (int64_t extent : shape) {
    if (extent < 0) return context.Error(absl::StrCat("shape ", ShapeToString(shape), " has a negative extent"));
  }
  return Types{{context.Type(0).dtype, shape}};
}

absl::Status LowerCenterCropPad(LowerContext& context) {
  const Shape& in = context.ShapeOf(0);
  const ecg::ValueType& type = context.output_types[0];
  DefineMap(context, 0, [&](const te::Builder::Idx& i) -> Scalar {
    if (NumElements(in) == 0) return te::Imm(type.dtype, 0);
    te::Builder::Idx source;
    bool pads = false;
    for (size_t d = 0; d < i.size(); ++d) {
      const int64_t shift = in[d] > type.shape[d] ? (in[d] - type.shape[d]) / 2 : -((type.shape[d] - in[d]) / 2);
      source.push_back(i[d] + Index(shift));
      pads |= type.shape[d] > in[d];
    }
    return te::Load(context.in[0], type.dtype, source, pads ? te::Imm(type.dtype, 0) : nullptr);
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> PadOps() {
  OpDef pad;
  pad.name = "Pad";
  pad.min_inputs = 2;
  pad.max_inputs = 4;
  pad.roles = {InputRole::kData, InputRole::kPads, InputRole::kScalar, InputRole::kAxes};
  pad.attrs = {{"mode", AttrKind::kString, false, {"constant", "reflect", "edge", "wrap"}}};
  pad.infer = InferPad;
  pad.lower = LowerPad;
  pad.normalize = NormalizePad;

  OpDef center;
  center.name = "CenterCropPad";
  center.min_inputs = center.max_inputs = 2;
  center.roles = {InputRole::kData, InputRole::kExtents};
  center.attrs = {{"axes", AttrKind::kInts}};
  center.infer = InferCenterCropPad;
  center.lower = LowerCenterCropPad;

  std::vector<OpDef> defs = {pad, center};
  for (OpDef& def : defs) {
    def.mapping = Always(MappingType::kOneToOne);
    def.flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
