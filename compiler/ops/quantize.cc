// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger, QLinearMatMul.
// real = (quantized - zero_point) * scale
#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/axes.h"
#include "compiler/ops/broadcast.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::FoldKind;
using te::Imm;
using te::Op;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

struct Limits {
  double low, high;
};
Limits LimitsOf(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return {-128, 127};
    case DType::kU8:
      return {0, 255};
    case DType::kI16:
      return {-32768, 32767};
    case DType::kU16:
      return {0, 65535};
    default:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
  }
}

// round(x) + zero_point, saturated. Clamped before the cast: out of range it would be undefined.
Scalar Saturate(const Scalar& x, const Scalar& zero_point, DType dtype) {
  const Limits limits = LimitsOf(dtype);
  const Scalar y = Call(Op::kRound, {x}) + zero_point;
  return te::Cast(dtype, te::Min(te::Max(y, Imm(y->dtype, limits.low)), Imm(y->dtype, limits.high)));
}

// A parameter is one element, or one per position of `axis`.
absl::StatusOr<int> ParameterAxis(const OpContext& context) {
  if (NumElements(context.ShapeOf(1)) == 1) return 0;
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", 1), context.Rank(0)));
  for (int k = 1; k < 3; ++k) {
    if (context.Has(k) && context.ShapeOf(k) != Shape{context.ShapeOf(0)[axis]}) {
      return context.Error(absl::StrCat("scale and zero point must be scalars or have shape [",
                                        context.ShapeOf(0)[axis], "], not ", ShapeToString(context.ShapeOf(k))));
    }
  }
  return axis;
}

// The element of parameter `tensor` that applies at position `along`; one-element parameters apply everywhere.
Scalar Parameter(const te::Builder& b, te::TensorId tensor, const te::Index& along) {
  const Shape& shape = b.info(tensor).shape;
  if (NumElements(shape) == 1) return b.At(tensor, Idx(shape.size(), te::Index(0)));
  return b.At(tensor, {along});
}
Scalar ZeroPoint(const LowerContext& context, int input, const te::Index& along, DType dtype) {
  if (!context.Has(input)) return Imm(dtype, 0);
  return te::Cast(dtype, Parameter(*context.builder, context.in[input], along));
}

// x / scale as a tensor of its own: ONNX rounds ties of the quotient in f32, so it must be rounded to f32 first.
te::TensorId Quotient(te::Builder& b, te::TensorId x, const std::function<Scalar(const Idx& i)>& scale) {
  return b.Map("quotient", DType::kF32, b.info(x).shape,
               [&](const Idx& i) { return te::Cast(DType::kF32, b.At(x, i)) / scale(i); });
}

absl::StatusOr<Types> InferQuantize(const OpContext& context, int) {
  RETURN_IF_ERROR(ParameterAxis(context).status());
  return Types{{context.Has(2) ? context.Type(2).dtype : DType::kU8, context.ShapeOf(0)}};
}

absl::Status LowerQuantize(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, ParameterAxis(context));
  const ecg::ValueType& type = context.output_types[0];
  const auto along = [&](const Idx& i) { return i.empty() ? te::Index(0) : i[axis]; };
  const te::TensorId quotient = Quotient(
      b, context.in[0], [&](const Idx& i) { return te::Cast(DType::kF32, Parameter(b, context.in[1], along(i))); });
  context.out[0] = b.Map("QuantizeLinear", type.dtype, type.shape, [&](const Idx& i) {
    return Saturate(b.At(quotient, i), ZeroPoint(context, 2, along(i), DType::kF32), type.dtype);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDequantize(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kInteger));
  RETURN_IF_ERROR(ParameterAxis(context).status());
  return Types{{context.Type(1).dtype, context.ShapeOf(0)}};
}

absl::Status LowerDequantize(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const int axis, ParameterAxis(context));
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("DequantizeLinear", type.dtype, type.shape, [&](const Idx& i) {
    const te::Index along = i.empty() ? te::Index(0) : i[axis];
    const Scalar x = te::Cast(DType::kI32, b.At(context.in[0], i)) - ZeroPoint(context, 2, along, DType::kI32);
    return te::Cast(type.dtype, te::Cast(DType::kF32, x) * te::Cast(DType::kF32, Parameter(b, context.in[1], along)));
  });
  return absl::OkStatus();
}

// x -> (y: u8, scale: f32, zero_point: u8) with the range of x widened to contain 0.
absl::StatusOr<Types> InferDynamicQuantize(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kFloat));
  return Types{{DType::kU8, context.ShapeOf(0)}, {DType::kF32, {}}, {DType::kU8, {}}};
}

absl::Status LowerDynamicQuantize(LowerContext& context) {
  te::Builder& b = *context.builder;
  const Shape& shape = context.ShapeOf(0);
  const Scalar zero = Imm(DType::kF32, 0);
  const auto x = [&](const Idx&, const Idx& r) { return te::Cast(DType::kF32, b.At(context.in[0], r)); };
  const te::TensorId low = b.Reduce("low", FoldKind::kMin, DType::kF32, DType::kF32, {}, shape, x,
                                    [&](const Idx&, const Scalar& acc) { return te::Min(acc, zero); });
  const te::TensorId high = b.Reduce("high", FoldKind::kMax, DType::kF32, DType::kF32, {}, shape, x,
                                     [&](const Idx&, const Scalar& acc) { return te::Max(acc, zero); });
  const te::TensorId scale = b.Map(
      "scale", DType::kF32, {}, [&](const Idx&) { return (b.At(high, {}) - b.At(low, {})) / Imm(DType::kF32, 255); });
  const te::TensorId zero_point = b.Map("zero_point", DType::kU8, {}, [&](const Idx&) {
    return Saturate((zero - b.At(low, {})) / b.At(scale, {}), zero, DType::kU8);
  });
  const te::TensorId quotient = Quotient(b, context.in[0], [&](const Idx&) { return b.At(scale, {}); });
  const te::TensorId y = b.Map("y", DType::kU8, shape, [&](const Idx& i) {
    return Saturate(b.At(quotient, i), te::Cast(DType::kF32, b.At(zero_point, {})), DType::kU8);
  });
  const te::TensorId all[] = {y, scale, zero_point};
  for (size_t k = 0; k < context.out.size(); ++k) context.out[k] = all[k];
  return absl::OkStatus();
}

// Integer matrix products. a: [B.., M, K], b: [B.., K, N]; zero points per tensor, per row of a, per column of b.
Shape Batch(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

absl::StatusOr<Types> InferIntegerMatMul(const OpContext& context, int b_input, DType dtype) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kInteger));
  RETURN_IF_ERROR(CheckDomain(context, b_input, Domain::kInteger));
  const Shape &a = context.ShapeOf(0), &b = context.ShapeOf(b_input);
  if (a.size() < 2 || b.size() < 2 || a.back() != b[b.size() - 2]) {
    return context.Error(absl::StrCat("shapes ", ShapeToString(a), " and ", ShapeToString(b), " do not multiply"));
  }
  ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(context, {Batch(a), Batch(b)}));
  shape.push_back(a[a.size() - 2]);
  shape.push_back(b.back());
  return Types{{dtype, std::move(shape)}};
}

te::TensorId IntegerMatMul(LowerContext& context, int b_input, int a_zero, int b_zero) {
  te::Builder& b = *context.builder;
  const Shape& shape = context.output_types[0].shape;
  const Shape &a_shape = context.ShapeOf(0), &b_shape = context.ShapeOf(b_input);
  return b.Reduce(
      context.op, FoldKind::kSum, DType::kI32, DType::kI32, shape, {a_shape.back()}, [&](const Idx& i, const Idx& k) {
        const Idx batch(i.begin(), i.end() - 2);
        Idx at_a = BroadcastIndex(Batch(a_shape), batch), at_b = BroadcastIndex(Batch(b_shape), batch);
        at_a.insert(at_a.end(), {i[i.size() - 2], k[0]});
        at_b.insert(at_b.end(), {k[0], i.back()});
        const auto element = [&](int input, const Idx& at, int zero, const te::Index& along) {
          return te::Cast(DType::kI32, b.At(context.in[input], at)) - ZeroPoint(context, zero, along, DType::kI32);
        };
        return element(0, at_a, a_zero, i[i.size() - 2]) * element(b_input, at_b, b_zero, i.back());
      });
}

absl::Status CheckParameter(const OpContext& context, int input, int64_t length) {
  if (!context.Has(input)) return absl::OkStatus();
  const Shape& shape = context.ShapeOf(input);
  if (NumElements(shape) == 1 || shape == Shape{length}) return absl::OkStatus();
  return context.Unsupported(
      absl::StrCat("input ", input, " of shape ", ShapeToString(shape), "; a scalar or [", length, "] is supported"));
}

absl::StatusOr<Types> InferMatMulInteger(const OpContext& context, int) {
  ASSIGN_OR_RETURN(Types types, InferIntegerMatMul(context, 1, DType::kI32));
  RETURN_IF_ERROR(CheckParameter(context, 2, types[0].shape[types[0].shape.size() - 2]));
  RETURN_IF_ERROR(CheckParameter(context, 3, types[0].shape.back()));
  return types;
}

// Inputs: a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point.
absl::StatusOr<Types> InferQLinearMatMul(const OpContext& context, int) {
  ASSIGN_OR_RETURN(Types types, InferIntegerMatMul(context, 3, context.Type(7).dtype));
  const int64_t rows = types[0].shape[types[0].shape.size() - 2], columns = types[0].shape.back();
  for (int k : {1, 2, 6, 7}) RETURN_IF_ERROR(CheckParameter(context, k, rows));
  for (int k : {4, 5}) RETURN_IF_ERROR(CheckParameter(context, k, columns));
  return types;
}

absl::Status LowerQLinearMatMul(LowerContext& context) {
  te::Builder& b = *context.builder;
  const te::TensorId product = IntegerMatMul(context, 3, 2, 5);
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("requantize", type.dtype, type.shape, [&](const Idx& i) {
    const te::Index row = i[i.size() - 2], column = i.back();
    const auto parameter = [&](int k, const te::Index& along) {
      return te::Cast(DType::kF32, Parameter(b, context.in[k], along));
    };
    const Scalar scale = parameter(1, row) * parameter(4, column) / parameter(6, row);
    return Saturate(te::Cast(DType::kF32, b.At(product, i)) * scale, parameter(7, row), type.dtype);
  });
  return absl::OkStatus();
}

double FlopsMatMul(const OpContext& context, const Types& outputs) {
  return 2.0 * NumElements(outputs[0].shape) * context.ShapeOf(0).back();
}

OpDef Define(const char* name, int min_inputs, int max_inputs) {
  OpDef def;
  def.name = name;
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.mapping = Always(MappingType::kManyToMany);
  def.flops = FlopsMatMul;
  return def;
}

}  // namespace

std::vector<OpDef> QuantizeOps() {
  const auto per_element = [](double flops) {
    return [flops](const OpContext&, const Types& outputs) { return flops * NumElements(outputs[0].shape); };
  };
  OpDef quantize = Define("QuantizeLinear", 2, 3);
  quantize.attrs = {{"axis", AttrKind::kInt}, {"saturate", AttrKind::kInt}};
  quantize.mapping = Always(MappingType::kOneToOne);
  quantize.infer = InferQuantize;
  quantize.flops = per_element(3);
  quantize.lower = LowerQuantize;

  OpDef dequantize = Define("DequantizeLinear", 2, 3);
  dequantize.attrs = {{"axis", AttrKind::kInt}};
  dequantize.mapping = Always(MappingType::kOneToOne);
  dequantize.infer = InferDequantize;
  dequantize.flops = per_element(2);
  dequantize.lower = LowerDequantize;

  OpDef dynamic = Define("DynamicQuantizeLinear", 1, 1);
  dynamic.num_outputs = 3;
  dynamic.infer = InferDynamicQuantize;
  dynamic.flops = per_element(5);
  dynamic.lower = LowerDynamicQuantize;

  OpDef matmul_integer = Define("MatMulInteger", 2, 4);
  matmul_integer.infer = InferMatMulInteger;
  matmul_integer.lower = [](LowerContext& context) {
    context.out[0] = IntegerMatMul(context, 1, 2, 3);
    return absl::OkStatus();
  };

  OpDef qlinear_matmul = Define("QLinearMatMul", 8, 8);
  qlinear_matmul.infer = InferQLinearMatMul;
  qlinear_matmul.lower = LowerQLinearMatMul;
  return {quantize, dequantize, dynamic, matmul_integer, qlinear_matmul};
}

}  // namespace fusion::ops
