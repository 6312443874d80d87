// MaxPool, AveragePool, LpPool and their global forms over x: [N, C, D…]: reductions over the taps of a window.
#include <algorithm>
#include <cmath>
#include <limits>
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

Scalar Lowest(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return te::ImmInt(dtype, std::numeric_limits<int8_t>::min());
    case DType::kI16:
      return te::ImmInt(dtype, std::numeric_limits<int16_t>::min());
    case DType::kI32:
      return te::ImmInt(dtype, std::numeric_limits<int32_t>::min());
    case DType::kI64:
      return te::ImmInt(dtype, std::numeric_limits<int64_t>::min());
    default:
      return te::Imm(dtype, IsFloat(dtype) ? -std::numeric_limits<double>::infinity() : 0);
  }
}

bool IsGlobal(const OpContext& context) { return context.op.rfind("Global", 0) == 0; }

absl::StatusOr<Window> PoolWindow(const OpContext& context) {
  if (!IsGlobal(context)) return MakeWindow(context, context.attrs.Ints("kernel_shape"));
  if (context.Rank(0) < 3) {
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " has no spatial dimensions"));
  }
  Window w;
  w.in.assign(context.ShapeOf(0).begin() + 2, context.ShapeOf(0).end());
  w.kernel = w.in;
  const size_t spatial = w.in.size();
  w.out = w.strides = w.dilations = Shape(spatial, 1);
  w.before = w.after = Shape(spatial, 0);
  return w;
}

absl::StatusOr<Types> InferPool(const OpContext& context, int num_outputs) {
  ASSIGN_OR_RETURN(const Window window, PoolWindow(context));
  const bool max = context.op == "MaxPool" || context.op == "GlobalMaxPool";
  if (!max && !IsFloat(context.Type(0).dtype)) {
    return context.Error(
        absl::StrCat("input has type ", DTypeName(context.Type(0).dtype), ", a float type is required"));
  }
  Shape out = {context.ShapeOf(0)[0], context.ShapeOf(0)[1]};
  out.insert(out.end(), window.out.begin(), window.out.end());
  Types types = {{context.Type(0).dtype, out}};
  if (num_outputs > 1) types.push_back({DType::kI64, out});
  return types;
}

Idx Source(const Window& window, const Idx& i, const Idx& r) {
  Idx from = {i[0], i[1]};
  const Idx at = window.At({i.begin() + 2, i.end()}, DropUnit(r, window.kernel));
  from.insert(from.end(), at.begin(), at.end());
  return from;
}

// The common case: one reduction of a named kind.
void LowerReduction(LowerContext& context, const Window& window, te::ReductionKind kind, const Scalar& outside,
                    const std::function<Scalar(const Scalar&)>& element,
                    const std::function<Scalar(const Idx& i, const Scalar& acc)>& then) {
  const ecg::ValueType& type = context.output_types[0];
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0 || NumElements(context.ShapeOf(0)) == 0) {
    DefineMap(context, 0, [&](const Idx&) { return outside; });
    return;
  }
  const bool padded = window.ReadsOutside();
  // Narrow integers are compared as i32, the width of a vector lane, because register tiles exist for that width.
  const DType acc = IsInteger(type.dtype) && DTypeBytes(type.dtype) < 4 ? DType::kI32 : ComputeType(type.dtype);
  if (NumElements(window.kernel) == 1 && !padded) {  // nothing to reduce
    DefineMap(context, 0, [&](const Idx& i) {
      const Idx from = Source(window, i, Idx(window.spatial(), Index(0)));
      const Scalar x = element(te::Cast(acc, b.At(context.in[0], from)));
      return then ? then(i, x) : x;
    });
    return;
  }
  context.out = {b.Reduce(
      "pool", kind, type.dtype, acc, type.shape, window.kernel,
      [&](const Idx& i, const Idx& r) {
        return element(te::Cast(acc, LoadWindow(b, context.in[0], Source(window, i, r), padded, outside)));
      },
      then)};
}

// Computes maxima and their positions. The reduction is sequential: the first of equal maxima wins, and NaN counts as
// largest.
void LowerMaxWithIndices(LowerContext& context, const Window& window) {
  const ecg::ValueType& type = context.output_types[0];
  const Shape& in = context.ShapeOf(0);
  te::Builder& b = *context.builder;
  if (NumElements(type.shape) == 0 || NumElements(in) == 0) {
    DefineMap(context, 0, [&](const Idx&) { return Lowest(type.dtype); });
    DefineMap(context, 1, [&](const Idx&) { return te::ImmInt(DType::kI64, 0); });
    return;
  }
  const bool padded = window.ReadsOutside();
  const bool column_major = context.attrs.Int("storage_order") == 1;
  const Scalar none = te::ImmInt(DType::kI64, -1);
  context.out = b.GeneralReduction(
      "pool", {type.dtype, DType::kI64}, type.shape, window.kernel, {Lowest(type.dtype), none},
      [&](const Idx& i, const Idx& r, const std::vector<Scalar>& acc) -> std::vector<Scalar> {
        const Idx from = Source(window, i, r);
        Idx position = from;
        Shape extents = in;
        if (column_major) {
          std::reverse(position.begin() + 2, position.end());
          std::reverse(extents.begin() + 2, extents.end());
        }
        const Scalar value = b.At(context.in[0], from);
        Scalar better = te::Call(te::Op::kOr, {te::Call(te::Op::kGt, {value, acc[0]}),
                                               te::Call(te::Op::kLt, {acc[1], te::ImmInt(DType::kI64, 0)})});
        if (IsFloat(type.dtype)) {
          const Scalar first_nan = te::Call(
              te::Op::kAnd,
              {te::Call(te::Op::kIsNan, {value}), te::Call(te::Op::kNot, {te::Call(te::Op::kIsNan, {acc[0]})})});
          better = te::Call(te::Op::kOr, {better, first_nan});
        }
        Scalar next = te::Select(better, value, acc[0]);
        Scalar where = te::Select(better, te::FromIndex(Linearize(position, extents)), acc[1]);
        if (!padded) return {next, where};
        te::Pred inside;
        for (size_t d = 2; d < from.size(); ++d) {
          inside.push_back({from[d], te::Cmp::kGe, Index(0)});
          inside.push_back({from[d], te::Cmp::kLt, Index(in[d])});
        }
        return {te::If(inside, next, acc[0]), te::If(inside, where, acc[1])};
      });
}

absl::Status LowerMaxPool(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window window, PoolWindow(context));
  if (context.output_types.size() > 1) {
    LowerMaxWithIndices(context, window);
  } else {
    LowerReduction(context, window, te::ReductionKind::kMax, Lowest(context.output_types[0].dtype),
                   [](const Scalar& x) { return x; }, {});
  }
  return absl::OkStatus();
}

// Returns how many taps count at each output of spatial dimension d: those inside the input, or inside the padded
// input.
std::vector<int64_t> TapCounts(const Window& window, int d, bool include_pad) {
  std::vector<int64_t> counts(window.out[d], 0);
  const int64_t lo = include_pad ? -window.before[d] : 0;
  const int64_t hi = window.in[d] + (include_pad ? window.after[d] : 0);
  for (int64_t o = 0; o < window.out[d]; ++o) {
    for (int64_t k = 0; k < window.kernel[d]; ++k) {
      const int64_t at = o * window.strides[d] + k * window.dilations[d] - window.before[d];
      counts[o] += at >= lo && at < hi ? 1 : 0;
    }
  }
  return counts;
}

absl::Status LowerAveragePool(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window window, PoolWindow(context));
  const DType acc = ComputeType(context.output_types[0].dtype);
  const bool include_pad = context.attrs.Int("count_include_pad") != 0;
  double constant = 1;                                          // the part of the count that all outputs share
  std::vector<te::TensorId> reciprocals(window.spatial(), -1);  // of the other part, per dimension: [out]
  for (int d = 0; d < window.spatial(); ++d) {
    if (window.before[d] <= 0 && (window.out[d] - 1) * window.strides[d] + window.Span(d) <= window.in[d]) {
      constant *= static_cast<double>(window.kernel[d]);
      continue;
    }
    const std::vector<int64_t> counts = TapCounts(window, d, include_pad);
    const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
    if (counts.empty() || *least == *most) {
      constant *= counts.empty() ? 1 : static_cast<double>(*most);
      continue;
    }
    Tensor table(acc, {window.out[d]});
    for (int64_t o = 0; o < window.out[d]; ++o)
      table.SetDouble(o, counts[o] == 0 ? 0 : 1.0 / static_cast<double>(counts[o]));
    reciprocals[d] = context.builder->Constant("reciprocal", std::move(table));
  }
  LowerReduction(
      context, window, te::ReductionKind::kSum, te::Imm(context.output_types[0].dtype, 0),
      [](const Scalar& x) { return x; },
      [&](const Idx& i, const Scalar& sum) {
        Scalar mean = constant > 1 ? sum * te::Imm(acc, 1 / constant) : sum;
        for (int d = 0; d < window.spatial(); ++d) {
          if (reciprocals[d] >= 0) mean = mean * context.builder->At(reciprocals[d], {i[d + 2]});
        }
        return mean;
      });
  return absl::OkStatus();
}

absl::Status LowerLpPool(LowerContext& context) {
  ASSIGN_OR_RETURN(const Window window, PoolWindow(context));
  const DType acc = ComputeType(context.output_types[0].dtype);
  const int64_t p = context.attrs.Int("p", 2);
  LowerReduction(
      context, window, te::ReductionKind::kSum, te::Imm(context.output_types[0].dtype, 0),
      [&](const Scalar& x) {
        if (p == 2) return x * x;
        const Scalar magnitude = te::Call(te::Op::kAbs, {x});
        return p == 1 ? magnitude : te::Call(te::Op::kPow, {magnitude, te::Imm(acc, static_cast<double>(p))});
      },
      [&](const Idx&, const Scalar& sum) {
        if (p == 1) return sum;
        if (p == 2) return te::Call(te::Op::kSqrt, {sum});
        return te::Call(te::Op::kPow, {sum, te::Imm(acc, 1.0 / static_cast<double>(p))});
      });
  return absl::OkStatus();
}

double PoolFlops(const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
  const auto window = PoolWindow(context);
  return window.ok()
             ? static_cast<double>(NumElements(outputs[0].shape)) * static_cast<double>(NumElements(window->kernel))
             : 0;
}

// A window of one element is a strided slice.
MappingType PoolMapping(const OpContext& context, int) {
  const auto window = PoolWindow(context);
  return window.ok() && NumElements(window->kernel) == 1 ? MappingType::kOneToOne : MappingType::kManyToMany;
}

OpDef Define(std::string name, std::vector<AttrSpec> attrs, bool linear,
             std::function<absl::Status(LowerContext&)> lower) {
  OpDef def;
  def.name = std::move(name);
  def.attrs = std::move(attrs);
  def.math.distributive = linear;
  def.infer = InferPool;
  def.mapping = PoolMapping;
  def.flops = PoolFlops;
  def.lower = std::move(lower);
  return def;
}

}  // namespace

std::vector<OpDef> PoolingOps() {
  const std::vector<AttrSpec> window = {kAutoPad,
                                        {"kernel_shape", AttrKind::kInts, true},
                                        {"pads", AttrKind::kInts},
                                        {"strides", AttrKind::kInts},
                                        {"dilations", AttrKind::kInts},
                                        {"ceil_mode", AttrKind::kInt}};
  OpDef max = Define("MaxPool", window, false, LowerMaxPool);
  max.attrs.push_back({"storage_order", AttrKind::kInt});
  max.num_outputs = 2;
  OpDef average = Define("AveragePool", window, true, LowerAveragePool);
  average.attrs.push_back({"count_include_pad", AttrKind::kInt});
  OpDef lp = Define("LpPool", window, false, LowerLpPool);
  lp.attrs.push_back({"p", AttrKind::kInt});
  return {max,
          average,
          lp,
          Define("GlobalMaxPool", {}, false, LowerMaxPool),
          Define("GlobalAveragePool", {}, true, LowerAveragePool),
          Define("GlobalLpPool", {{"p", AttrKind::kInt}}, false, LowerLpPool)};
}

}  // namespace fusion::ops
