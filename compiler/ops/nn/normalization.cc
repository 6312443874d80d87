// BatchNormalization, LayerNormalization, InstanceNormalization, GroupNormalization, LRN, LpNormalization,
// MeanVarianceNormalization. Moments take two passes (the mean, then squared deviations), because one pass suffers from
// cancellation.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/broadcast.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Op;
using te::ReductionKind;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

Scalar Sqrt(const Scalar& x) { return Call(Op::kSqrt, {x}); }

// Mean and 1/sqrt(variance + epsilon) of `reduction` elements, one pair per position of `shape`.
struct Moments {
  te::TensorId mean, inverse_deviation;
};
Moments DefineMoments(te::Builder& b, DType compute, const Shape& shape, const Shape& reduction, double epsilon,
                      const std::function<Scalar(const Idx& i, const Idx& r)>& x) {
  const double scale = 1.0 / static_cast<double>(NumElements(reduction));
  Moments m;
  m.mean = b.Reduce("mean", ReductionKind::kSum, compute, compute, shape, reduction, x,
                    [&](const Idx&, const Scalar& acc) { return acc * Imm(compute, scale); });
  m.inverse_deviation = b.Reduce(
      "inverse_deviation", ReductionKind::kSum, compute, compute, shape, reduction,
      [&](const Idx& i, const Idx& r) {
        const Scalar d = x(i, r) - b.At(m.mean, i);
        return d * d;
      },
      [&](const Idx&, const Scalar& acc) {
        return Imm(compute, 1) / Sqrt(acc * Imm(compute, scale) + Imm(compute, epsilon));
      });
  return m;
}

absl::Status CheckLength(const OpContext& context, int input, const char* name, int64_t length) {
  if (context.ShapeOf(input) == Shape{length}) return absl::OkStatus();
  return context.Error(absl::StrCat(name, " must have shape [", length, "], not ",
                                    ShapeToString(context.ShapeOf(input)), " (input ",
                                    ShapeToString(context.ShapeOf(0)), ")"));
}

// --- BatchNormalization. x: [N, C, ..]; a tensor of rank 1 has one channel.
int64_t Channels(const OpContext& context) { return context.Rank(0) < 2 ? 1 : context.ShapeOf(0)[1]; }
bool IsTraining(const OpContext& context) { return context.attrs.Int("training_mode") != 0; }

absl::StatusOr<Types> InferBatchNorm(const OpContext& context, int num_outputs) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  const char* const names[] = {"X", "scale", "B", "mean", "var"};
  for (int i = 1; i < 5; ++i) RETURN_IF_ERROR(CheckLength(context, i, names[i], Channels(context)));
  if (num_outputs > 1 && !IsTraining(context)) return context.Unsupported("running statistics outside training mode");
  Types types{context.Type(0)};
  if (num_outputs > 1) types.push_back(context.Type(3));
  if (num_outputs > 2) types.push_back(context.Type(4));
  return types;
}

absl::Status LowerBatchNorm(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const Shape channels{Channels(context)};
  const double epsilon = context.attrs.Float("epsilon", 1e-5);
  const auto load = [&](int k, const Idx& c) { return te::Cast(compute, b.At(context.in[k], c)); };

  te::TensorId mean = context.in[3], variance = context.in[4];
  if (IsTraining(context)) {
    std::vector<int> folded;  // all axes but C
    for (int d = 0; d < context.Rank(0); ++d) {
      if (d != 1) folded.push_back(d);
    }
    const Shape reduction = ShapeAt(context.ShapeOf(0), folded);
    const Scalar scale = Imm(compute, 1.0 / static_cast<double>(NumElements(reduction)));
    const auto x = [&](const Idx& c, const Idx& r) {
      return LoadCompute(b, context.in[0], MergeIndex(context.Rank(0) < 2 ? Idx{} : c, r, folded));
    };
    const auto times_scale = [&](const Idx&, const Scalar& acc) { return acc * scale; };
    mean = b.Reduce("mean", ReductionKind::kSum, compute, compute, channels, reduction, x, times_scale);
    variance = b.Reduce(
        "variance", ReductionKind::kSum, compute, compute, channels, reduction,
        [&](const Idx& c, const Idx& r) {
          const Scalar d = x(c, r) - b.At(mean, c);
          return d * d;
        },
        times_scale);
    const double momentum = context.attrs.Float("momentum", 0.9);
    const te::TensorId current[] = {mean, variance};
    for (size_t k = 0; k + 1 < context.out.size() && k < 2; ++k) {
      const DType dtype = context.output_types[k + 1].dtype;
      context.out[k + 1] = b.Map("running", dtype, channels, [&](const Idx& c) {
        return te::Cast(dtype, load(3 + static_cast<int>(k), c) * Imm(compute, momentum) +
                                   b.At(current[k], c) * Imm(compute, 1 - momentum));
      });
    }
  }
  const te::TensorId scale = b.Map("scale", compute, channels, [&](const Idx& c) {
    return load(1, c) / Sqrt(te::Cast(compute, b.At(variance, c)) + Imm(compute, epsilon));
  });
  const te::TensorId shift = b.Map("shift", compute, channels, [&](const Idx& c) {
    return load(2, c) - te::Cast(compute, b.At(mean, c)) * b.At(scale, c);
  });
  context.out[0] = b.Map("BatchNormalization", type.dtype, type.shape, [&](const Idx& i) {
    const Idx c{context.Rank(0) < 2 ? te::Index(0) : i[1]};
    return te::Cast(type.dtype, LoadCompute(b, context.in[0], i) * b.At(scale, c) + b.At(shift, c));
  });
  return absl::OkStatus();
}

absl::Status NormalizeBatchNorm(ImportContext& context) {
  ecg::Attributes& attrs = context.node().attrs;
  if (attrs.Int("spatial", 1) == 0) {
    return absl::UnimplementedError(
        absl::StrCat("BatchNormalization '", context.node().name, "': spatial=0 is not supported"));
  }
  attrs.Erase("spatial");
  if (context.opset() < 7) {
    if (attrs.Int("is_test") == 0) {
      return absl::UnimplementedError(
          absl::StrCat("BatchNormalization '", context.node().name, "': training (is_test=0) is not supported"));
    }
    attrs.Erase("is_test");
    attrs.Erase("consumed_inputs");
  }
  return absl::OkStatus();
}

// --- LayerNormalization. x: [outer.., inner..], normalised over the inner axes from `axis` on.
absl::StatusOr<Types> InferLayerNorm(const OpContext& context, int num_outputs) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  for (int k = 1; k < 3; ++k) {
    if (!context.Has(k)) continue;
    ASSIGN_OR_RETURN(const Shape shape, BroadcastShapes(context, {context.ShapeOf(0), context.ShapeOf(k)}));
    if (shape != context.ShapeOf(0)) {
      return context.Error(absl::StrCat(k == 1 ? "Scale " : "B ", ShapeToString(context.ShapeOf(k)),
                                        " does not broadcast to ", ShapeToString(context.ShapeOf(0))));
    }
  }
  Types types{context.Type(0)};
  Shape statistics = context.ShapeOf(0);
  for (int d = axis; d < context.Rank(0); ++d) statistics[d] = 1;
  for (int k = 1; k < num_outputs; ++k) types.push_back({DType::kF32, statistics});
  return types;
}

absl::Status LowerLayerNorm(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const Shape outer(type.shape.begin(), type.shape.begin() + axis), inner(type.shape.begin() + axis, type.shape.end());
  const auto row = [&](const Idx& i) { return Idx(i.begin(), i.begin() + axis); };

  const Moments moments =
      DefineMoments(b, compute, outer, inner, context.attrs.Float("epsilon", 1e-5), [&](const Idx& i, const Idx& r) {
        Idx at = i;
        at.insert(at.end(), r.begin(), r.end());
        return LoadCompute(b, context.in[0], at);
      });
  context.out[0] = b.Map("LayerNormalization", type.dtype, type.shape, [&](const Idx& i) {
    const auto parameter = [&](int k) {
      return te::Cast(compute, b.At(context.in[k], BroadcastIndex(context.ShapeOf(k), i)));
    };
    Scalar y = (LoadCompute(b, context.in[0], i) - b.At(moments.mean, row(i))) *
               b.At(moments.inverse_deviation, row(i)) * parameter(1);
    if (context.Has(2)) y = y + parameter(2);
    return te::Cast(type.dtype, y);
  });
  const te::TensorId statistics[] = {moments.mean, moments.inverse_deviation};
  for (size_t k = 1; k < context.out.size(); ++k) {
    const ecg::ValueType& t = context.output_types[k];
    context.out[k] = b.Map("statistics", t.dtype, t.shape,
                           [&](const Idx& i) { return te::Cast(t.dtype, b.At(statistics[k - 1], row(i))); });
  }
  return absl::OkStatus();
}

// --- InstanceNormalization and GroupNormalization. x: [N, C, D..]; C = groups * c; one pair of moments per (n, group).
// A scale of length `groups` applies per group (opset 18); one of length C applies per channel (InstanceNormalization,
// opset 21).
absl::StatusOr<Types> InferGrouped(const OpContext& context, int64_t groups, bool per_group) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  if (context.Rank(0) < 2) return context.Error("input must have a batch and a channel axis");
  const int64_t channels = context.ShapeOf(0)[1];
  if (groups <= 0 ? groups != channels : channels % groups != 0) {
    return context.Error(absl::StrCat("num_groups=", groups, " does not divide C=", channels));
  }
  const bool grouped = per_group && context.ShapeOf(1) == Shape{groups};
  RETURN_IF_ERROR(CheckLength(context, 1, "scale", grouped ? groups : channels));
  RETURN_IF_ERROR(CheckLength(context, 2, "bias", grouped ? groups : channels));
  return Types{context.Type(0)};
}

absl::Status LowerGrouped(LowerContext& context, int64_t groups) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const int64_t channels = type.shape[1];
  if (channels == 0) {  // no group has a channel, and there is nothing to normalize
    context.out[0] = b.Map(context.op, type.dtype, type.shape, [&](const Idx&) { return Imm(type.dtype, 0); });
    return absl::OkStatus();
  }
  const int64_t per_group = channels / groups;
  Shape reduction(type.shape.begin() + 2, type.shape.end());
  if (per_group != 1) reduction.insert(reduction.begin(), per_group);
  const Moments moments = DefineMoments(b, compute, {type.shape[0], groups}, reduction,
                                        context.attrs.Float("epsilon", 1e-5), [&](const Idx& i, const Idx& r) {
                                          Idx at{i[0], per_group == 1 ? i[1] : i[1] * per_group + r[0]};
                                          at.insert(at.end(), r.begin() + (per_group == 1 ? 0 : 1), r.end());
                                          return LoadCompute(b, context.in[0], at);
                                        });
  const bool parameters_per_channel = context.ShapeOf(1)[0] == channels;
  context.out[0] = b.Map(context.op, type.dtype, type.shape, [&](const Idx& i) {
    const Idx group{i[0], te::FloorDiv(i[1], per_group)};
    const Idx p{parameters_per_channel ? i[1] : group[1]};
    const auto parameter = [&](int k) { return te::Cast(compute, b.At(context.in[k], p)); };
    return te::Cast(type.dtype, (LoadCompute(b, context.in[0], i) - b.At(moments.mean, group)) *
                                        b.At(moments.inverse_deviation, group) * parameter(1) +
                                    parameter(2));
  });
  return absl::OkStatus();
}

// --- LRN. y = x / (bias + alpha/size * sum of x^2 over `size` channels around)^beta
absl::StatusOr<Types> InferLrn(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  if (context.Rank(0) < 2) return context.Error("input must have a channel axis");
  if (context.attrs.Int("size") < 1) return context.Error("size must be positive");
  return Types{context.Type(0)};
}

absl::Status LowerLrn(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const int64_t size = context.attrs.Int("size"), before = (size - 1) / 2;
  const double alpha = context.attrs.Float("alpha", 1e-4) / static_cast<double>(size);
  const double beta = context.attrs.Float("beta", 0.75), bias = context.attrs.Float("bias", 1.0);
  context.out[0] = b.Reduce(
      "LRN", ReductionKind::kSum, type.dtype, compute, type.shape, {size},
      [&](const Idx& i, const Idx& r) {
        Idx at = i;
        at[1] = i[1] + r[0] - te::Index(before);
        const Scalar x = te::Cast(compute, b.AtOr(context.in[0], at, 0));
        return x * x;
      },
      [&](const Idx& i, const Scalar& acc) {
        const Scalar base = Imm(compute, bias) + Imm(compute, alpha) * acc;
        return te::Cast(type.dtype, LoadCompute(b, context.in[0], i) / Call(Op::kPow, {base, Imm(compute, beta)}));
      });
  return absl::OkStatus();
}

// --- LpNormalization. y = x / norm_p(x along axis), 0 where the norm is 0
absl::StatusOr<Types> InferLpNorm(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  RETURN_IF_ERROR(NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)).status());
  const int64_t p = context.attrs.Int("p", 2);
  if (p != 1 && p != 2) return context.Error(absl::StrCat("p=", p, " must be 1 or 2"));
  return Types{context.Type(0)};
}

absl::Status LowerLpNorm(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const bool squares = context.attrs.Int("p", 2) == 2;
  const te::TensorId norm = b.Reduce(
      "norm", ReductionKind::kSum, compute, compute, ShapeWithout(type.shape, {axis}), {type.shape[axis]},
      [&](const Idx& i, const Idx& r) {
        const Scalar x = LoadCompute(b, context.in[0], MergeIndex(i, r, {axis}));
        return squares ? x * x : Call(Op::kAbs, {x});
      },
      [&](const Idx&, const Scalar& acc) { return squares ? Sqrt(acc) : acc; });
  context.out[0] = b.Map("LpNormalization", type.dtype, type.shape, [&](const Idx& i) {
    const Scalar length = b.At(norm, IndexWithout(i, {axis})), zero = Imm(compute, 0);
    const Scalar quotient = LoadCompute(b, context.in[0], i) / length;
    return te::Cast(type.dtype, te::Select(Call(Op::kEq, {length, zero}), zero, quotient));
  });
  return absl::OkStatus();
}

// --- MeanVarianceNormalization. y = (x - mean) / (deviation + 1e-9) over `axes`
absl::StatusOr<std::vector<int>> MvnAxes(const OpContext& context) {
  return NormalizeAxes(context, context.attrs.Ints("axes", {0, 2, 3}), context.Rank(0));
}

absl::StatusOr<Types> InferMvn(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  RETURN_IF_ERROR(MvnAxes(context).status());
  return Types{context.Type(0)};
}

absl::Status LowerMvn(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const std::vector<int> axes, MvnAxes(context));
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  // The specification adds 1e-9 to the deviation, not to the variance. Adding 1e-18 under the root gives the same where
  // it matters.
  const Moments moments =
      DefineMoments(b, compute, ShapeWithout(type.shape, axes), ShapeAt(type.shape, axes), 1e-18,
                    [&](const Idx& i, const Idx& r) { return LoadCompute(b, context.in[0], MergeIndex(i, r, axes)); });
  context.out[0] = b.Map(context.op, type.dtype, type.shape, [&](const Idx& i) {
    const Idx row = IndexWithout(i, axes);
    return te::Cast(type.dtype, (LoadCompute(b, context.in[0], i) - b.At(moments.mean, row)) *
                                    b.At(moments.inverse_deviation, row));
  });
  return absl::OkStatus();
}

OpDef Define(const char* name, int min_inputs, int max_inputs, std::vector<AttrSpec> attrs, double flops_per_element) {
  OpDef def;
  def.name = name;
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.attrs = std::move(attrs);
  def.mapping = Always(MappingType::kManyToMany);
  def.flops = [flops_per_element](const OpContext&, const Types& outputs) {
    return flops_per_element * NumElements(outputs[0].shape);
  };
  return def;
}

}  // namespace

std::vector<OpDef> NormalizationOps() {
  const AttrSpec epsilon{"epsilon", AttrKind::kFloat}, axis{"axis", AttrKind::kInt};

  OpDef batch = Define("BatchNormalization", 5, 5,
                       {epsilon, {"momentum", AttrKind::kFloat}, {"training_mode", AttrKind::kInt}}, 2);
  batch.num_outputs = 3;
  batch.infer = InferBatchNorm;
  // Table 2: with constant statistics the operator is a multiplication and an addition.
  batch.mapping = [](const OpContext& context, int) {
    return IsTraining(context) ? MappingType::kManyToMany : MappingType::kOneToOne;
  };
  batch.math = {.distributive = true};
  batch.lower = LowerBatchNorm;
  batch.normalize = NormalizeBatchNorm;

  OpDef layer = Define("LayerNormalization", 2, 3, {axis, epsilon, {"stash_type", AttrKind::kInt}}, 8);
  layer.num_outputs = 3;
  layer.infer = InferLayerNorm;
  layer.lower = LowerLayerNorm;

  OpDef instance = Define("InstanceNormalization", 3, 3, {epsilon}, 8);
  instance.infer = [](const OpContext& context, int) {
    return InferGrouped(context, context.Rank(0) < 2 ? 1 : context.ShapeOf(0)[1], false);
  };
  instance.lower = [](LowerContext& context) { return LowerGrouped(context, context.ShapeOf(0)[1]); };

  OpDef group = Define("GroupNormalization", 3, 3,
                       {epsilon, {"num_groups", AttrKind::kInt, true}, {"stash_type", AttrKind::kInt}}, 8);
  group.infer = [](const OpContext& context, int) {
    return InferGrouped(context, context.attrs.Int("num_groups"), true);
  };
  group.lower = [](LowerContext& context) { return LowerGrouped(context, context.attrs.Int("num_groups")); };

  OpDef lrn = Define("LRN", 1, 1,
                     {{"size", AttrKind::kInt, true},
                      {"alpha", AttrKind::kFloat},
                      {"beta", AttrKind::kFloat},
                      {"bias", AttrKind::kFloat}},
                     14);
  lrn.infer = InferLrn;
  lrn.lower = LowerLrn;

  OpDef lp = Define("LpNormalization", 1, 1, {axis, {"p", AttrKind::kInt}}, 3);
  lp.infer = InferLpNorm;
  lp.lower = LowerLpNorm;

  OpDef mvn = Define("MeanVarianceNormalization", 1, 1, {{"axes", AttrKind::kInts}}, 6);
  mvn.infer = InferMvn;
  mvn.lower = LowerMvn;
  return {batch, layer, instance, group, lrn, lp, mvn};
}

}  // namespace fusion::ops
