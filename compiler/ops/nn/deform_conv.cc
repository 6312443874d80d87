// DeformConv: a convolution whose taps are displaced by learned offsets.
//   x: [N, C, D..], w: [M, C/g, K..], offset: [N, og·K·d, O..] (d = spatial dimensions), b: [M], mask: [N, og·K, O..]
// First the image is sampled at every tap (multilinear, zero outside), then the samples are multiplied with the weights
// as in any convolution.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/window.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Index;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

constexpr int kX = 0, kW = 1, kOffset = 2, kBias = 3, kMask = 4;

absl::StatusOr<Window> WindowOf(const OpContext& context) {
  const Shape& w = context.ShapeOf(kW);
  if (context.Rank(kX) < 3 || w.size() != context.ShapeOf(kX).size()) {
    return context.Error(
        absl::StrCat("X ", ShapeToString(context.ShapeOf(kX)), " and W ", ShapeToString(w), " do not fit"));
  }
  const Shape kernel(w.begin() + 2, w.end());
  if (context.attrs.Ints("kernel_shape", kernel) != kernel) return context.Error("kernel_shape differs from W");
  return MakeWindow(context, kernel);
}

absl::StatusOr<Types> Infer(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, kX, Domain::kFloat));
  RETURN_IF_ERROR(CheckSameType(context, 0, 5));
  ASSIGN_OR_RETURN(const Window window, WindowOf(context));
  const Shape &x = context.ShapeOf(kX), &w = context.ShapeOf(kW);
  const int64_t group = context.attrs.Int("group", 1), offset_group = context.attrs.Int("offset_group", 1);
  if (group < 1 || offset_group < 1 || x[1] % group != 0 || w[0] % group != 0 || w[1] != x[1] / group ||
      x[1] % offset_group != 0) {
    return context.Error(absl::StrCat("group=", group, " and offset_group=", offset_group, " do not fit X ",
                                      ShapeToString(x), " and W ", ShapeToString(w)));
  }
  if (NumElements(window.in) == 0) return context.Error("X has an empty spatial dimension");
  Shape out{x[0], w[0]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  const auto check = [&](int input, const char* name, int64_t channels) -> absl::Status {
    Shape expected = out;
    expected[1] = channels;
    if (!context.Has(input) || context.ShapeOf(input) == expected) return absl::OkStatus();
    return context.Error(
        absl::StrCat(name, " must be ", ShapeToString(expected), ", not ", ShapeToString(context.ShapeOf(input))));
  };
  const int64_t taps = offset_group * NumElements(window.kernel);
  RETURN_IF_ERROR(check(kOffset, "offset", taps * window.spatial()));
  RETURN_IF_ERROR(check(kMask, "mask", taps));
  if (context.Has(kBias) && context.ShapeOf(kBias) != Shape{w[0]}) {
    return context.Error(absl::StrCat("B must be [", w[0], "], not ", ShapeToString(context.ShapeOf(kBias))));
  }
  return Types{{context.Type(kX).dtype, out}};
}

// Samples the image at every tap: [N, C, K.., O..].
te::TensorId Sample(LowerContext& context, const Window& window) {
  te::Builder& b = *context.builder;
  const Shape& x = context.ShapeOf(kX);
  const DType acc = ComputeType(context.Type(kX).dtype);
  const int spatial = window.spatial();
  const int64_t offset_group = context.attrs.Int("offset_group", 1), per_group = x[1] / offset_group;

  // `points`: (n, offset group, K.., O..). The tables below add an axis for the two corners along a dimension.
  Shape points{x[0], offset_group};
  points.insert(points.end(), window.kernel.begin(), window.kernel.end());
  points.insert(points.end(), window.out.begin(), window.out.end());
  const auto taps_of = [&](const Idx& i) { return Idx(i.begin() + 2, i.begin() + 2 + spatial); };
  const auto outputs_of = [&](const Idx& i) { return Idx(i.begin() + 2 + spatial, i.begin() + 2 + 2 * spatial); };
  const auto parameter = [&](int input, const Idx& i, int64_t parts, int part) {
    const Index tap = i[1] * NumElements(window.kernel) + te::Linearize(taps_of(i), window.kernel);
    Idx at{i[0], tap * parts + Index(part)};
    const Idx o = outputs_of(i);
    at.insert(at.end(), o.begin(), o.end());
    return LoadCompute(b, context.in[input], at);
  };
  std::vector<te::TensorId> index, weight;  // one per dimension, over points and corner
  Shape corners = points;
  corners.push_back(2);
  for (int d = 0; d < spatial; ++d) {
    const te::TensorId position = b.Map("position", acc, points, [&](const Idx& i) {
      const Index place = window.At(outputs_of(i), taps_of(i))[d];
      return te::Cast(acc, te::FromIndex(place)) + parameter(kOffset, i, spatial, d);
    });
    const auto corner = [&](const Idx& i) {
      return Call(Op::kFloor, {b.At(position, {i.begin(), i.end() - 1})}) + te::Cast(acc, te::FromIndex(i.back()));
    };
    index.push_back(
        b.Map("index", DType::kI64, corners, [&](const Idx& i) { return ClampedIndex(corner(i), window.in[d]); }));
    weight.push_back(b.Map("weight", acc, corners, [&](const Idx& i) {
      const Scalar at = corner(i);
      const Scalar distance = Call(Op::kAbs, {b.At(position, {i.begin(), i.end() - 1}) - at});
      const Scalar inside = Call(Op::kAnd, {Call(Op::kGe, {at, Imm(acc, 0)}),
                                            Call(Op::kLe, {at, Imm(acc, static_cast<double>(window.in[d] - 1))})});
      return te::Select(inside, Imm(acc, 1) - distance, Imm(acc, 0));
    }));
  }
  Shape samples = points;
  samples[1] = x[1];
  return b.Reduce(
      "samples", te::ReductionKind::kSum, acc, acc, samples, Shape(spatial, 2),
      [&](const Idx& i, const Idx& r) {
        Idx from{i[0], i[1]};
        Scalar factor;
        for (int d = 0; d < spatial; ++d) {
          Idx at = i;
          at[1] = te::FloorDiv(i[1], per_group);
          at.push_back(r[d]);
          from.push_back(Index::Load(index[d], at, {0, window.in[d] - 1}));
          const Scalar w = b.At(weight[d], at);
          factor = factor == nullptr ? w : factor * w;
        }
        return factor * LoadCompute(b, context.in[kX], from);
      },
      [&](const Idx& i, const Scalar& sum) {
        if (!context.Has(kMask)) return sum;
        Idx at = i;
        at[1] = te::FloorDiv(i[1], per_group);
        return sum * parameter(kMask, at, 1, 0);
      });
}

absl::Status Lower(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window window, WindowOf(context));
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  const DType acc = ComputeType(type.dtype);
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const te::TensorId samples = Sample(context, window);
  const Shape& w = context.ShapeOf(kW);
  const int64_t per_group = w[0] / context.attrs.Int("group", 1);
  const Shape taps(w.begin() + 1, w.end());
  const te::TensorId sum = b.Reduce("deform_conv", te::ReductionKind::kSum, context.Has(kBias) ? acc : type.dtype, acc,
                                    type.shape, taps, [&](const Idx& i, const Idx& r) {
                                      const Idx k = DropUnit(r, taps);
                                      Idx from{i[0], te::FloorDiv(i[1], per_group) * w[1] + k[0]};
                                      from.insert(from.end(), k.begin() + 1, k.end());
                                      from.insert(from.end(), i.begin() + 2, i.end());
                                      Idx weight{i[1]};
                                      weight.insert(weight.end(), k.begin(), k.end());
                                      return b.At(samples, from) * LoadCompute(b, context.in[kW], weight);
                                    });
  if (!context.Has(kBias)) {
    context.out = {sum};
    return absl::OkStatus();
  }
  DefineMap(context, 0, [&](const Idx& i) {
    return te::Cast(type.dtype, b.At(sum, i) + LoadCompute(b, context.in[kBias], {i[1]}));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> DeformConvOps() {
  OpDef def;
  def.name = "DeformConv";
  def.min_inputs = 3;
  def.max_inputs = 5;
  def.attrs = {{"dilations", AttrKind::kInts},   {"group", AttrKind::kInt}, {"kernel_shape", AttrKind::kInts},
               {"offset_group", AttrKind::kInt}, {"pads", AttrKind::kInts}, {"strides", AttrKind::kInts}};
  def.infer = Infer;
  def.lower = Lower;
  def.mapping = Always(MappingType::kManyToMany);
  def.flops = [](const OpContext& context, const Types& outputs) {
    const Shape& w = context.ShapeOf(kW);
    const double taps = static_cast<double>(NumElements({w.begin() + 1, w.end()}));
    return 2 * taps * static_cast<double>(NumElements(outputs[0].shape));
  };
  return {def};
}

}  // namespace fusion::ops
