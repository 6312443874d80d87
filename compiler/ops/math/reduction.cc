// Reduce*, ArgMax, ArgMin, CumSum, CumProd.
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
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

struct ReduceOp {
  const char* name;
  ReductionKind reduction;
  Scalar (*element)(const Scalar& x) = nullptr;                  // applied to each element before the reduction
  Scalar (*then)(const Scalar& acc, double elements) = nullptr;  // applied after the reduction
  MathProperties math = {};
  int axes_input_since = 18;  // opset in which `axes` became an input
  Domain domain = Domain::kNumeric;
};

Scalar Abs(const Scalar& x) { return Call(Op::kAbs, {x}); }
Scalar Square(const Scalar& x) { return x * x; }

// Computes integers in f64, because they have no square root or logarithm of their own.
Scalar InFloat(Op op, const Scalar& x) {
  if (IsFloat(x->dtype)) return Call(op, {x});
  return te::Cast(x->dtype, Call(op, {te::Cast(DType::kF64, x)}));
}

std::vector<ReduceOp> Table() {
  constexpr MathProperties kSumLike{.associative = true, .commutative = true, .distributive = true};
  constexpr MathProperties kCommutes{.commutative = true};
  return {
      {"ReduceSum", ReductionKind::kSum, nullptr, nullptr, kSumLike, 13},
      {"ReduceMean", ReductionKind::kSum, nullptr,
       [](const Scalar& acc, double n) {
         return IsFloat(acc->dtype) ? acc * Imm(acc->dtype, 1 / n) : acc / Imm(acc->dtype, n);
       },
       kSumLike},
      {"ReduceMax", ReductionKind::kMax, nullptr, nullptr, kCommutes, 18, Domain::kAny},
      {"ReduceMin", ReductionKind::kMin, nullptr, nullptr, kCommutes, 18, Domain::kAny},
      {"ReduceProd", ReductionKind::kProd, nullptr, nullptr, kCommutes},
      {"ReduceL1", ReductionKind::kSum, Abs},
      {"ReduceL2", ReductionKind::kSum, Square, [](const Scalar& acc, double) { return InFloat(Op::kSqrt, acc); }},
      {"ReduceLogSum", ReductionKind::kSum, nullptr, [](const Scalar& acc, double) { return InFloat(Op::kLog, acc); }},
      {"ReduceSumSquare", ReductionKind::kSum, Square},
  };
}

// Returns the reduced axes, sorted; empty when the operator passes its input through (noop_with_empty_axes).
absl::StatusOr<std::vector<int>> ReducedAxes(const OpContext& context) {
  std::vector<int64_t> axes;
  if (context.Has(1)) {
    ASSIGN_OR_RETURN(axes, context.ConstantInts(1, "axes"));
  }
  if (axes.empty()) {
    std::vector<int> all;
    if (context.attrs.Int("noop_with_empty_axes") == 0) {
      for (int d = 0; d < context.Rank(0); ++d) all.push_back(d);
    }
    return all;
  }
  return NormalizeAxes(context, axes, context.Rank(0));
}

Shape ReducedShape(const OpContext& context, const std::vector<int>& axes) {
  Shape shape = context.ShapeOf(0);
  if (context.attrs.Int("keepdims", 1) == 0) return ShapeWithout(shape, axes);
  for (int axis : axes) shape[axis] = 1;
  return shape;
}

absl::StatusOr<Types> InferReduce(const OpContext& context, Domain domain) {
  RETURN_IF_ERROR(CheckDomain(context, 0, domain));
  ASSIGN_OR_RETURN(const std::vector<int> axes, ReducedAxes(context));
  return Types{{context.Type(0).dtype, ReducedShape(context, axes)}};
}

double FlopsReduce(const OpContext& context, const Types&) { return NumElements(context.ShapeOf(0)); }

// Gives the coordinates of the input at output position `i` and reduced position `r`.
struct ReduceIndex {
  std::vector<int> axes;
  bool keepdims;
  Idx operator()(const Idx& i, const Idx& r) const { return MergeIndex(keepdims ? IndexWithout(i, axes) : i, r, axes); }
};

absl::Status LowerReduce(const ReduceOp& op, LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const std::vector<int> axes, ReducedAxes(context));
  const ecg::ValueType& type = context.output_types[0];
  if (axes.empty()) {  // each element is reduced alone
    context.out[0] = b.Map(op.name, type.dtype, type.shape, [&](const Idx& i) {
      Scalar x = LoadCompute(b, context.in[0], i);
      if (op.element != nullptr) x = op.element(x);
      if (op.then != nullptr) x = op.then(x, 1);
      return te::Cast(type.dtype, x);
    });
    return absl::OkStatus();
  }
  const ReduceIndex at{axes, context.attrs.Int("keepdims", 1) != 0};
  const Shape reduction_shape = ShapeAt(context.ShapeOf(0), axes);
  const double elements = static_cast<double>(NumElements(reduction_shape));
  // bool counts as 0 and 1, so its least and greatest element are those of u8.
  const DType acc = type.dtype == DType::kBool ? DType::kU8 : ComputeType(type.dtype);
  std::function<Scalar(const Idx&, const Scalar&)> then;
  if (op.then != nullptr) {
    then = [&](const Idx&, const Scalar& acc) { return te::Cast(type.dtype, op.then(acc, elements)); };
  }
  context.out[0] = b.Reduce(
      op.name, op.reduction, type.dtype, acc, type.shape, reduction_shape,
      [&](const Idx& i, const Idx& r) {
        const Scalar x = te::Cast(acc, b.At(context.in[0], at(i, r)));
        return op.element == nullptr ? x : op.element(x);
      },
      then);
  return absl::OkStatus();
}

// max + log(sum(exp(x - max))), because a plain sum of exponentials overflows.
absl::Status LowerLogSumExp(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const std::vector<int> axes, ReducedAxes(context));
  const ecg::ValueType& type = context.output_types[0];
  if (axes.empty()) {
    context.out[0] =
        b.Map("ReduceLogSumExp", type.dtype, type.shape, [&](const Idx& i) { return b.At(context.in[0], i); });
    return absl::OkStatus();
  }
  const DType compute = IsFloat(type.dtype) ? ComputeType(type.dtype) : DType::kF64;
  const ReduceIndex at{axes, context.attrs.Int("keepdims", 1) != 0};
  const Shape reduction_shape = ShapeAt(context.ShapeOf(0), axes);
  const te::TensorId max = b.Reduce(
      "max", ReductionKind::kMax, compute, compute, type.shape, reduction_shape,
      [&](const Idx& i, const Idx& r) { return te::Cast(compute, b.At(context.in[0], at(i, r))); },
      // With an infinite maximum, inf - inf would be NaN.
      [&](const Idx&, const Scalar& acc) { return te::Select(Call(Op::kIsInf, {acc}), Imm(compute, 0), acc); });
  context.out[0] = b.Reduce(
      "ReduceLogSumExp", ReductionKind::kSum, type.dtype, compute, type.shape, reduction_shape,
      [&](const Idx& i, const Idx& r) {
        return Call(Op::kExp, {te::Cast(compute, b.At(context.in[0], at(i, r))) - b.At(max, i)});
      },
      [&](const Idx& i, const Scalar& acc) { return te::Cast(type.dtype, Call(Op::kLog, {acc}) + b.At(max, i)); });
  return absl::OkStatus();
}

absl::Status NormalizeReduce(ImportContext& context, int axes_input_since) {
  if (context.opset() < axes_input_since) AttributeToInput(context, "axes", 1);
  return absl::OkStatus();
}

// A mean over run-time extents is the sum divided by their product; f16 and bf16 compute it in f32.
absl::Status DynamicMean(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !import.IsDynamic(node.inputs[0])) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<int> axes, ReducedAxes(context));
  ecg::ValueId count = IntScalar(import, 1);
  bool dynamic = false;
  for (int axis : axes) {
    dynamic = dynamic || import.IsDynamic(node.inputs[0], axis);
    ASSIGN_OR_RETURN(count, ScalarOp(import, "Mul", count, import.Extent(node.inputs[0], axis)));
  }
  if (!dynamic) return absl::OkStatus();
  std::vector<ecg::ValueId> inputs = node.inputs;
  const bool half = ComputeType(context.Type(0).dtype) != context.Type(0).dtype;
  if (half) {
    ecg::Attributes to;
    to.Set("to", int64_t{1});
    ASSIGN_OR_RETURN(const auto wide, import.AddNode("Cast", {inputs[0]}, to));
    inputs[0] = wide[0];
  }
  ASSIGN_OR_RETURN(const auto sum, import.AddNode("ReduceSum", inputs, node.attrs));
  ASSIGN_OR_RETURN(const auto divisor, import.AddNode("CastLike", {count, sum[0]}, {}));
  ASSIGN_OR_RETURN(auto mean, import.AddNode("Div", {sum[0], divisor[0]}, {}));
  if (half) {
    ASSIGN_OR_RETURN(mean, import.AddNode("CastLike", {mean[0], node.inputs[0]}, {}));
  }
  import.ReplaceWith(std::move(mean));
  return absl::OkStatus();
}

// ArgMax, ArgMin.
absl::StatusOr<Types> InferArg(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", 0), context.Rank(0)));
  if (context.ShapeOf(0)[axis] == 0) return context.Error("the reduced axis is empty");
  return Types{{DType::kI64, ReducedShape(context, {axis})}};
}

Scalar Extreme(DType dtype, bool lowest) {
  if (IsFloat(dtype)) {
    const double inf = std::numeric_limits<double>::infinity();
    return Imm(dtype, lowest ? -inf : inf);
  }
  const int bits = DTypeBits(dtype);
  if (!IsSigned(dtype)) return te::ImmInt(dtype, lowest ? 0 : static_cast<int64_t>(~uint64_t{0} >> (64 - bits)));
  const int64_t max = static_cast<int64_t>(~uint64_t{0} >> (65 - bits));
  return te::ImmInt(dtype, lowest ? -max - 1 : max);
}

absl::Status LowerArg(LowerContext& context, bool max) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", 0), context.Rank(0)));
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(context.Type(0).dtype);
  const ReduceIndex at{{axis}, context.attrs.Int("keepdims", 1) != 0};
  const bool last = context.attrs.Int("select_last_index") != 0;
  const Op better = max ? (last ? Op::kGe : Op::kGt) : (last ? Op::kLe : Op::kLt);
  context.out[0] = b.GeneralReduction(
      context.op, {DType::kI64}, type.shape, {context.ShapeOf(0)[axis]},
      {Extreme(compute, max), te::ImmInt(DType::kI64, 0)},
      [&](const Idx& i, const Idx& r, const std::vector<Scalar>& acc) {
        const Scalar x = LoadCompute(b, context.in[0], at(i, r));
        Scalar take = Call(better, {x, acc[0]});
        if (IsFloat(compute)) {  // NaN wins
          const Scalar nan = Call(Op::kIsNan, {x});
          const Scalar first = Call(Op::kNot, {Call(Op::kIsNan, {acc[0]})});
          take = Call(Op::kOr, {take, last ? nan : Call(Op::kAnd, {nan, first})});
        }
        return std::vector<Scalar>{te::Select(take, x, acc[0]), te::Select(take, te::FromIndex(r[0]), acc[1])};
      },
      [](const Idx&, const std::vector<Scalar>& acc) { return std::vector<Scalar>{acc[1]}; })[0];
  return absl::OkStatus();
}

absl::StatusOr<Types> InferPrefix(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  ASSIGN_OR_RETURN(const std::vector<int64_t> axis, context.ConstantInts(1, "axis"));
  if (axis.size() != 1) return context.Error("axis must be a scalar");
  RETURN_IF_ERROR(NormalizeAxis(context, axis[0], context.Rank(0)).status());
  return Types{context.Type(0)};
}

// CumSum and CumProd: sums or products of the elements up to each element along `axis`, without that element if
// `exclusive`. With `reverse`: of the elements from it on.
absl::Status LowerPrefix(LowerContext& context, ReductionKind kind) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const std::vector<int64_t> given, context.ConstantInts(1, "axis"));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, given[0], context.Rank(0)));
  const ecg::ValueType& type = context.output_types[0];
  const DType compute = ComputeType(type.dtype);
  const int64_t open = context.attrs.Int("exclusive") != 0 ? 1 : 0;
  const bool reverse = context.attrs.Int("reverse") != 0;
  const int64_t extent = type.shape[axis];
  context.out[0] = b.Reduce("prefix", kind, type.dtype, compute, type.shape, {extent}, [&](const Idx& i, const Idx& r) {
    Idx at = i;
    at[axis] = r[0];
    const te::Comparison taken = reverse ? te::Comparison{r[0], te::Cmp::kGe, i[axis] + te::Index(open)}
                                         : te::Comparison{r[0], te::Cmp::kLt, i[axis] + te::Index(1 - open)};
    return te::If({taken}, LoadCompute(b, context.in[0], at), Imm(compute, kind == ReductionKind::kProd ? 1 : 0));
  });
  return absl::OkStatus();
}

OpDef DefineReduce(const char* name, int axes_input_since, Domain domain) {
  OpDef def;
  def.name = name;
  def.max_inputs = 2;
  def.roles = {InputRole::kData, InputRole::kAxes};
  def.attrs = {{"keepdims", AttrKind::kInt}, {"noop_with_empty_axes", AttrKind::kInt}};
  def.mapping = Always(MappingType::kManyToMany);
  def.infer = [domain](const OpContext& context, int) { return InferReduce(context, domain); };
  def.flops = FlopsReduce;
  def.normalize = [axes_input_since](ImportContext& context) { return NormalizeReduce(context, axes_input_since); };
  return def;
}

}  // namespace

std::vector<OpDef> ReductionOps() {
  std::vector<OpDef> ops;
  for (const ReduceOp& op : Table()) {
    OpDef def = DefineReduce(op.name, op.axes_input_since, op.domain);
    def.math = op.math;
    def.lower = [op](LowerContext& context) { return LowerReduce(op, context); };
    if (def.name == "ReduceMean") def.dynamic = DynamicMean;
    ops.push_back(def);
  }
  OpDef log_sum_exp = DefineReduce("ReduceLogSumExp", 18, Domain::kNumeric);
  log_sum_exp.lower = LowerLogSumExp;
  ops.push_back(log_sum_exp);

  for (const bool max : {true, false}) {
    OpDef arg;
    arg.name = max ? "ArgMax" : "ArgMin";
    arg.attrs = {{"axis", AttrKind::kInt}, {"keepdims", AttrKind::kInt}, {"select_last_index", AttrKind::kInt}};
    arg.mapping = Always(MappingType::kManyToMany);
    arg.infer = InferArg;
    arg.flops = FlopsReduce;
    arg.lower = [max](LowerContext& context) { return LowerArg(context, max); };
    ops.push_back(arg);
  }

  OpDef cumsum;
  cumsum.name = "CumSum";
  cumsum.min_inputs = cumsum.max_inputs = 2;
  cumsum.roles = {InputRole::kData, InputRole::kAxes};
  cumsum.attrs = {{"exclusive", AttrKind::kInt}, {"reverse", AttrKind::kInt}};
  cumsum.mapping = Always(MappingType::kManyToMany);
  cumsum.infer = InferPrefix;
  cumsum.flops = FlopsReduce;
  cumsum.lower = [](LowerContext& context) { return LowerPrefix(context, ReductionKind::kSum); };
  ops.push_back(cumsum);
  OpDef cumprod = cumsum;
  cumprod.name = "CumProd";
  cumprod.lower = [](LowerContext& context) { return LowerPrefix(context, ReductionKind::kProd); };
  ops.push_back(cumprod);
  return ops;
}

}  // namespace fusion::ops
