// Conv and ConvTranspose in one to three (or more) dimensions, with groups.
//   x: [N, C, D…], w: [M, C/g, K…] (ConvTranspose: [C, M/g, K…]), b: [M]
// Each is one reduction over (input channel of the group, taps…) and, with a bias, one map after it: schedulers
// recognise the anchor by the roles of its axes and the bias as its epilogue.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/window.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

Shape SpatialOf(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

absl::Status CheckOperands(const OpContext& context) {
  const Shape& x = context.ShapeOf(0);
  const Shape& w = context.ShapeOf(1);
  if (!IsFloat(context.Type(0).dtype) || context.Type(1).dtype != context.Type(0).dtype) {
    return context.Error(absl::StrCat("x is ", DTypeName(context.Type(0).dtype), " and w ",
                                      DTypeName(context.Type(1).dtype), "; one floating-point type is required"));
  }
  if (x.size() < 3 || w.size() != x.size()) {
    return context.Error(absl::StrCat("x ", ShapeToString(x), " and w ", ShapeToString(w), " do not fit"));
  }
  const Shape kernel = context.attrs.Ints("kernel_shape", SpatialOf(w));
  if (kernel != SpatialOf(w)) {
    return context.Error(absl::StrCat("kernel_shape ", ShapeToString(kernel), " differs from w ", ShapeToString(w)));
  }
  const int64_t group = context.attrs.Int("group", 1);
  if (group < 1 || x[1] % group != 0) return context.Error(absl::StrCat("group=", group, " does not divide C=", x[1]));
  return absl::OkStatus();
}

absl::Status CheckBias(const OpContext& context, int64_t channels) {
  if (!context.Has(2)) return absl::OkStatus();
  if (context.ShapeOf(2) == Shape{channels} && context.Type(2).dtype == context.Type(0).dtype) return absl::OkStatus();
  return context.Error(absl::StrCat("bias is ", DTypeName(context.Type(2).dtype), ShapeToString(context.ShapeOf(2)),
                                    ", ", DTypeName(context.Type(0).dtype), "[", channels, "] is required"));
}

void AddBias(LowerContext& context, te::TensorId sum) {
  if (!context.Has(2)) {
    context.out = {sum};
    return;
  }
  DefineMap(context, 0,
            [&](const Idx& i) { return context.builder->At(sum, i) + context.builder->At(context.in[2], {i[1]}); });
}

absl::StatusOr<Types> InferConv(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckOperands(context));
  const Shape& x = context.ShapeOf(0);
  const Shape& w = context.ShapeOf(1);
  const int64_t group = context.attrs.Int("group", 1);
  if (w[1] * group != x[1]) {
    return context.Error(absl::StrCat("w ", ShapeToString(w), " has ", w[1], " input channels for each of ", group,
                                      " groups, x ", ShapeToString(x), " has C=", x[1]));
  }
  if (w[0] % group != 0) return context.Error(absl::StrCat("group=", group, " does not divide M=", w[0]));
  RETURN_IF_ERROR(CheckBias(context, w[0]));
  ASSIGN_OR_RETURN(const Window window, MakeWindow(context, SpatialOf(w)));
  Shape out = {x[0], w[0]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  return Types{{context.Type(0).dtype, out}};
}

// y[n, o, p…] = Σ(i, k…) x[n, g(o)·C/g + i, p·s + k·d − pad] · w[o, i, k…]
absl::Status LowerConv(LowerContext& context) {
  const Shape& w = context.ShapeOf(1);
  ASSIGN_OR_RETURN(const Window window, MakeWindow(context, SpatialOf(w)));
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  const int64_t per_group = w[0] / context.attrs.Int("group", 1);
  const Shape taps(w.begin() + 1, w.end());
  const bool padded = window.ReadsOutside();
  const te::TensorId sum =
      b.Reduce("conv", te::ReductionKind::kSum, type.dtype, acc, type.shape, taps, [&](const Idx& i, const Idx& r) {
        const Idx k = DropUnit(r, taps);
        Idx from = {i[0], FloorDiv(i[1], per_group) * w[1] + k[0]};
        const Idx at = window.At({i.begin() + 2, i.end()}, {k.begin() + 1, k.end()});
        from.insert(from.end(), at.begin(), at.end());
        Idx weight = {i[1]};
        weight.insert(weight.end(), k.begin(), k.end());
        const Scalar x = LoadWindow(b, context.in[0], from, padded, te::Imm(type.dtype, 0));
        return te::Cast(acc, x) * te::Cast(acc, b.At(context.in[1], weight));
      });
  AddBias(context, sum);
  return absl::OkStatus();
}

double ConvFlops(const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  const Shape& w = context.ShapeOf(1);
  const double elements = static_cast<double>(NumElements(outputs[0].shape));
  return elements * (2.0 * static_cast<double>(NumElements({w.begin() + 1, w.end()})) + (context.Has(2) ? 1 : 0));
}

// ConvTranspose: the window of the convolution whose gradient it is. `before` and `after` are cut off the full result.
absl::StatusOr<Window> MakeTransposedWindow(const OpContext& context) {
  Window w;
  w.in = SpatialOf(context.ShapeOf(0));
  w.kernel = SpatialOf(context.ShapeOf(1));
  const int spatial = w.spatial();
  ASSIGN_OR_RETURN(w.strides, SpatialInts(context, "strides", spatial, 1));
  ASSIGN_OR_RETURN(w.dilations, SpatialInts(context, "dilations", spatial, 1));
  ASSIGN_OR_RETURN(const Shape extra, SpatialInts(context, "output_padding", spatial, 0));
  RETURN_IF_ERROR(SplitPads(context, spatial, &w.before, &w.after));
  const std::string auto_pad = context.attrs.String("auto_pad", "NOTSET");
  Shape wanted = context.attrs.Ints("output_shape");
  if (static_cast<int>(wanted.size()) == spatial + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && static_cast<int>(wanted.size()) != spatial) {
    return context.Error(
        absl::StrCat("output_shape ", ShapeToString(wanted), " does not fit ", spatial, " dimensions"));
  }
  for (int d = 0; d < spatial; ++d) {
    if (w.kernel[d] < 1 || w.strides[d] < 1 || w.dilations[d] < 1) {
      return context.Error("kernel, strides and dilations must be positive");
    }
    const int64_t full = w.strides[d] * (w.in[d] - 1) + w.Span(d) + extra[d];
    int64_t out = full - w.before[d] - w.after[d];
    const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (!wanted.empty() || same) {
      out = wanted.empty() ? w.in[d] * w.strides[d] : wanted[d];
      const int64_t total = std::max<int64_t>(0, full - out);
      w.before[d] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.after[d] = total - w.before[d];
    } else if (auto_pad == "VALID") {
      out = full;
      w.before[d] = w.after[d] = 0;
    }
    if (out < 0) return context.Error(absl::StrCat("pads leave nothing of spatial dimension ", d));
    w.out.push_back(out);
  }
  return w;
}

absl::StatusOr<Types> InferConvTranspose(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckOperands(context));
  const Shape& x = context.ShapeOf(0);
  const Shape& w = context.ShapeOf(1);
  if (w[0] != x[1]) {
    return context.Error(
        absl::StrCat("w ", ShapeToString(w), " has ", w[0], " input channels, x ", ShapeToString(x), " has C=", x[1]));
  }
  const int64_t channels = w[1] * context.attrs.Int("group", 1);
  RETURN_IF_ERROR(CheckBias(context, channels));
  ASSIGN_OR_RETURN(const Window window, MakeTransposedWindow(context));
  Shape out = {x[0], channels};
  out.insert(out.end(), window.out.begin(), window.out.end());
  return Types{{context.Type(0).dtype, out}};
}

// The strided form, without a predicate. With u = p + pad, only the taps k = u % s + s·j reach output p, from
// q = u//s − j. The phases a = u % s are output channels of a plain convolution over h = u//s:
//   c[n, h…, a…, o] = Σ(i, j…) x[n, g·C/g + i, h − j…] · w[g·C/g + i, o % (M/g), a + s·j…]
//   y[n, o, p…] = c[n, u//s, u%s, o]
// Because phases count from u, they do not occur in the border tests, which involve h and j alone. Where the stride
// does not divide the kernel, some phases have one tap less: its weight is a padded load outside the kernel, and its
// operand is 0 instead of x, which may be infinite. A predicate around the product would hide it from the schedulers.
absl::Status LowerPhases(LowerContext& context, const Window& window) {
  const Shape& w = context.ShapeOf(1);
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  te::Builder& b = *context.builder;
  const int spatial = window.spatial();
  Shape phases = {type.shape[0]};  // [N, H, s, W, s, …, M]
  Shape taps = {w[0] / context.attrs.Int("group", 1)};
  bool pads_x = false, pads_w = false;
  std::vector<bool> ends_early(spatial);  // rows behind the last one that any tap reaches are zero
  for (int d = 0; d < spatial; ++d) {
    const int64_t stride = window.strides[d];
    const int64_t reach = (window.kernel[d] + stride - 1) / stride;
    const int64_t wanted = (window.out[d] - 1 + window.before[d]) / stride + 1;
    const int64_t rows = std::min(wanted, window.in[d] + (reach - 1) * window.dilations[d]);
    ends_early[d] = rows < wanted;
    phases.insert(phases.end(), {rows, stride});
    taps.push_back(reach);
    pads_x |= reach > 1 || rows > window.in[d];
    pads_w |= reach * stride > window.kernel[d];
  }
  phases.push_back(type.shape[1]);
  const Scalar zero = te::Imm(type.dtype, 0);
  const te::TensorId sum = b.Reduce(
      "conv_transpose", te::ReductionKind::kSum, type.dtype, acc, phases, taps, [&](const Idx& given, const Idx& r) {
        const Idx i = DropUnit(given, phases);
        const Idx k = DropUnit(r, taps);
        const Index channel = FloorDiv(i.back(), w[1]) * taps[0] + k[0];
        Idx from = {i[0], channel};
        Idx weight = {channel, Mod(i.back(), w[1])};
        for (int d = 0; d < spatial; ++d) {
          from.push_back(i[2 * d + 1] - k[d + 1] * window.dilations[d]);
          weight.push_back(i[2 * d + 2] + k[d + 1] * window.strides[d]);
        }
        te::Pred in_kernel;
        for (int d = 0; d < spatial; ++d) {
          if (taps[d + 1] * window.strides[d] == window.kernel[d]) continue;
          in_kernel.push_back({weight[d + 2], te::Cmp::kLt, Index(window.kernel[d])});
        }
        Scalar x = LoadWindow(b, context.in[0], from, pads_x, zero);
        if (!in_kernel.empty()) x = te::If(in_kernel, x, zero);
        return te::Cast(acc, x) * te::Cast(acc, LoadWindow(b, context.in[1], weight, pads_w, zero));
      });
  DefineMap(context, 0, [&](const Idx& i) {
    Idx from = {i[0]};
    te::Pred reached;
    for (int d = 0; d < spatial; ++d) {
      const Index u = i[d + 2] + Index(window.before[d]);
      from.push_back(FloorDiv(u, window.strides[d]));
      if (ends_early[d]) reached.push_back({from.back(), te::Cmp::kLt, Index(phases[2 * d + 1])});
      from.push_back(Mod(u, window.strides[d]));
    }
    from.push_back(i[1]);
    Scalar value = b.At(sum, from);
    if (!reached.empty()) value = te::If(reached, value, te::Imm(type.dtype, 0));
    return context.Has(2) ? value + b.At(context.in[2], {i[1]}) : value;
  });
  return absl::OkStatus();
}

// y[n, o, p…] = Σ(i, k…) x[n, g·C/g + i, q…] · w[g·C/g + i, o % (M/g), k…]  where q·s = p + pad − k·d, if such a q
// exists
absl::Status LowerConvTranspose(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window window, MakeTransposedWindow(context));
  const Shape& w = context.ShapeOf(1);
  const ecg::ValueType& type = context.output_types[0];
  const DType acc = ComputeType(type.dtype);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0) {
    DefineMap(context, 0, [](const Idx&) { return Scalar(); });
    return absl::OkStatus();
  }
  bool strided = false, both = false;
  for (int d = 0; d < window.spatial(); ++d) {
    strided |= window.strides[d] > 1;
    both |= window.strides[d] > 1 && window.dilations[d] > 1;
  }
  if (strided && !both) return LowerPhases(context, window);
  const int64_t in_group = w[0] / context.attrs.Int("group", 1);
  Shape taps = {in_group};
  taps.insert(taps.end(), window.kernel.begin(), window.kernel.end());
  const te::TensorId sum = b.Reduce(
      "conv_transpose", te::ReductionKind::kSum, type.dtype, acc, type.shape, taps, [&](const Idx& i, const Idx& r) {
        const Idx k = DropUnit(r, taps);
        const Index channel = FloorDiv(i[1], w[1]) * in_group + k[0];
        Idx from = {i[0], channel};
        Idx weight = {channel, Mod(i[1], w[1])};
        te::Pred has_tap;
        for (int d = 0; d < window.spatial(); ++d) {
          const Index scaled = i[d + 2] + Index(window.before[d]) - k[d + 1] * window.dilations[d];
          if (window.strides[d] > 1) has_tap.push_back({Mod(scaled, window.strides[d]), te::Cmp::kEq, Index(0)});
          from.push_back(FloorDiv(scaled, window.strides[d]));
          weight.push_back(k[d + 1]);
        }
        // There is no tap outside the image, so that an infinite weight meets no zero there.
        for (int d = 0; strided && d < window.spatial(); ++d) {
          has_tap.push_back({from[d + 2], te::Cmp::kGe, Index(0)});
          has_tap.push_back({from[d + 2], te::Cmp::kLt, Index(window.in[d])});
        }
        const Scalar x = te::Cast(acc, te::Load(context.in[0], type.dtype, from, te::Imm(type.dtype, 0)));
        const Scalar product = x * te::Cast(acc, b.At(context.in[1], weight));
        return has_tap.empty() ? product : te::If(has_tap, product, te::Imm(acc, 0));
      });
  AddBias(context, sum);
  return absl::OkStatus();
}

double ConvTransposeFlops(const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  const Shape& w = context.ShapeOf(1);
  return 2.0 * static_cast<double>(NumElements(context.ShapeOf(0))) *
             static_cast<double>(NumElements({w.begin() + 1, w.end()})) +
         (context.Has(2) ? static_cast<double>(NumElements(outputs[0].shape)) : 0);
}

}  // namespace

std::vector<OpDef> ConvolutionOps() {
  OpDef conv;
  conv.name = "Conv";
  conv.min_inputs = 2;
  conv.max_inputs = 3;
  conv.attrs = {kAutoPad,
                {"dilations", AttrKind::kInts},
                {"group", AttrKind::kInt},
                {"kernel_shape", AttrKind::kInts},
                {"pads", AttrKind::kInts},
                {"strides", AttrKind::kInts}};
  conv.math = {.distributive = true};
  conv.infer = InferConv;
  conv.lower = LowerConv;
  conv.flops = ConvFlops;
  conv.mapping = Always(MappingType::kManyToMany);

  OpDef transpose = conv;
  transpose.name = "ConvTranspose";
  transpose.attrs.push_back({"output_padding", AttrKind::kInts});
  transpose.attrs.push_back({"output_shape", AttrKind::kInts});
  transpose.infer = InferConvTranspose;
  transpose.lower = LowerConvTranspose;
  transpose.flops = ConvTransposeFlops;

  return {conv, transpose};
}

}  // namespace fusion::ops
