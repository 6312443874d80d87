// Softmax, LogSoftmax, Hardmax. x: [.., K, ..], normalised along K; rows are all other axes in their order.
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Op;
using te::ReductionKind;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> Infer(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  RETURN_IF_ERROR(NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)).status());
  return Types{context.Type(0)};
}

struct Rows {
  te::Builder& b;
  te::TensorId x;
  DType compute;
  Shape shape;  // shape of x
  Shape rows;   // shape without `axis`
  int axis;

  Idx Row(const Idx& i) const { return IndexWithout(i, {axis}); }
  Scalar X(const Idx& row, const Idx& k) const { return LoadCompute(b, x, MergeIndex(row, k, {axis})); }
  te::TensorId Max() const {
    return b.Reduce("max", ReductionKind::kMax, compute, compute, rows, {shape[axis]},
                    [&](const Idx& row, const Idx& k) { return X(row, k); });
  }
};

absl::StatusOr<Rows> MakeRows(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  return Rows{*context.builder,
              context.in[0],
              ComputeType(context.Type(0).dtype),
              context.ShapeOf(0),
              ShapeWithout(context.ShapeOf(0), {axis}),
              axis};
}

// The exponential of a difference to the maximum, of which kernels need not know that it is never above 0.
Scalar ExpNonpositive(const Scalar& difference) {
  return Call(Op::kExp, {Call(Op::kMin, {te::Imm(difference->dtype, 0), difference})});
}

absl::Status LowerSoftmax(LowerContext& context) {
  ASSIGN_OR_RETURN(const Rows rows, MakeRows(context));
  te::Builder& b = rows.b;
  const te::TensorId max = rows.Max();
  const te::TensorId exp = b.Map("exp", rows.compute, rows.shape, [&](const Idx& i) {
    return ExpNonpositive(LoadCompute(b, rows.x, i) - b.At(max, rows.Row(i)));
  });
  // There is one division per row. The sum is at least 1, so that its inverse has one rounding error and no more.
  const te::TensorId scale = b.Reduce(
      "scale", ReductionKind::kSum, rows.compute, rows.compute, rows.rows, {rows.shape[rows.axis]},
      [&](const Idx& row, const Idx& k) { return b.At(exp, MergeIndex(row, k, {rows.axis})); },
      [&](const Idx&, const Scalar& sum) { return te::Imm(rows.compute, 1) / sum; });
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("softmax", type.dtype, type.shape,
                         [&](const Idx& i) { return te::Cast(type.dtype, b.At(exp, i) * b.At(scale, rows.Row(i))); });
  return absl::OkStatus();
}

absl::Status LowerLogSoftmax(LowerContext& context) {
  ASSIGN_OR_RETURN(const Rows rows, MakeRows(context));
  te::Builder& b = rows.b;
  const te::TensorId max = rows.Max();
  const te::TensorId log_sum = b.Reduce(
      "log_sum", ReductionKind::kSum, rows.compute, rows.compute, rows.rows, {rows.shape[rows.axis]},
      [&](const Idx& row, const Idx& k) { return ExpNonpositive(rows.X(row, k) - b.At(max, row)); },
      [](const Idx&, const Scalar& acc) { return Call(Op::kLog, {acc}); });
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("log_softmax", type.dtype, type.shape, [&](const Idx& i) {
    const Scalar shifted = LoadCompute(b, rows.x, i) - b.At(max, rows.Row(i));
    return te::Cast(type.dtype, shifted - b.At(log_sum, rows.Row(i)));
  });
  return absl::OkStatus();
}

// Returns 1 at the first maximum of each row, 0 elsewhere.
absl::Status LowerHardmax(LowerContext& context) {
  ASSIGN_OR_RETURN(const Rows rows, MakeRows(context));
  te::Builder& b = rows.b;
  const te::TensorId max = rows.Max();
  const int64_t extent = rows.shape[rows.axis];
  const te::TensorId first = b.Reduce("first", ReductionKind::kMin, DType::kI64, DType::kI64, rows.rows, {extent},
                                      [&](const Idx& row, const Idx& k) {
                                        return te::Select(Call(Op::kEq, {rows.X(row, k), b.At(max, row)}),
                                                          te::FromIndex(k[0]), te::ImmInt(DType::kI64, extent));
                                      });
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("hardmax", type.dtype, type.shape, [&](const Idx& i) {
    return te::Cast(type.dtype, Call(Op::kEq, {te::FromIndex(i[rows.axis]), b.At(first, rows.Row(i))}));
  });
  return absl::OkStatus();
}

// Before opset 13 the input was flattened at `axis` (default 1) and normalised over everything behind it.
absl::Status Normalize(ImportContext& context) {
  if (context.opset() >= 13 || context.input(0) == nullptr) return absl::OkStatus();
  ecg::Node& node = context.node();
  const Shape shape = context.input(0)->type.shape;
  const OpContext view(node.op, node.name, node.attrs, {context.input(0)});
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(view, node.attrs.Int("axis", 1), static_cast<int>(shape.size())));
  int64_t rows = 1, columns = 1, behind = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    (static_cast<int>(d) < axis ? rows : columns) *= shape[d];
    if (static_cast<int>(d) > axis) behind *= shape[d];
  }
  if (behind == 1) {  // nothing to flatten
    node.attrs.Set("axis", int64_t{axis});
    return absl::OkStatus();
  }
  const std::string op = node.op;
  const ecg::ValueId x = node.inputs[0];
  const auto shape_constant = [&](const Shape& s) {
    return context.AddConstant(Tensor::From(DType::kI64, {static_cast<int64_t>(s.size())}, s));
  };
  ASSIGN_OR_RETURN(const auto flat, context.AddNode("Reshape", {x, shape_constant({rows, columns})}, {}));
  ecg::Attributes attrs;
  attrs.Set("axis", int64_t{1});
  ASSIGN_OR_RETURN(const auto y, context.AddNode(op, flat, attrs));
  ASSIGN_OR_RETURN(const auto result, context.AddNode("Reshape", {y[0], shape_constant(shape)}, {}));
  context.ReplaceWith(result);
  return absl::OkStatus();
}

OpDef Define(const char* name, absl::Status (*lower)(LowerContext&), double flops_per_element) {
  OpDef def;
  def.name = name;
  def.attrs = {{"axis", AttrKind::kInt}};
  def.infer = Infer;
  def.mapping = Always(MappingType::kManyToMany);
  def.flops = [flops_per_element](const OpContext&, const Types& outputs) {
    return flops_per_element * NumElements(outputs[0].shape);
  };
  def.lower = lower;
  def.normalize = Normalize;
  return def;
}

}  // namespace

std::vector<OpDef> SoftmaxOps() {
  // The figures count max, subtraction, exp, sum and division.
  return {Define("Softmax", LowerSoftmax, 5), Define("LogSoftmax", LowerLogSoftmax, 5),
          Define("Hardmax", LowerHardmax, 2)};
}

}  // namespace fusion::ops
