// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear. real = (quantized - zero_point) * scale
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/saturate.h"
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

struct Limits {
  double low, high;
};
Limits LimitsOf(DType dtype) {
  const double values = std::ldexp(1.0, DTypeBits(dtype));
  return IsSigned(dtype) ? Limits{-values / 2, values / 2 - 1} : Limits{0, values - 1};
}

// Returns round(x) + zero_point, saturated. It is clamped before the cast, which is undefined out of range.
Scalar Saturate(const Scalar& x, const Scalar& zero_point, DType dtype) {
  const Limits limits = LimitsOf(dtype);
  const Scalar y = Call(Op::kRound, {x}) + zero_point;
  return te::Cast(dtype, te::Min(te::Max(y, Imm(y->dtype, limits.low)), Imm(y->dtype, limits.high)));
}

// Returns x + zero_point in f32, rounded to a narrow float. A zero point of 0 changes nothing, not even the sign of a
// zero.
Scalar Round(const Scalar& x, const Scalar& zero_point, DType dtype, bool saturate) {
  const Scalar zero = Imm(DType::kF32, 0);
  const Scalar y = te::Select(Call(Op::kEq, {zero_point, zero}), x, x + zero_point);
  return te::Cast(dtype, saturate ? HeldForFloat8(y, dtype) : y);
}

// Selects the element of scale and zero point that applies at a position of x: the only one (axis -1), the one at the
// position's coordinate on `axis`, or, with block > 0, the one of its quantization block, `block` positions along the
// axis.
struct Granularity {
  int axis = -1;
  int64_t block = 0;

  Idx At(const Shape& parameter, const Idx& i) const {
    if (axis < 0) return Idx(parameter.size(), te::Index(0));
    if (block == 0) return {i[axis]};
    Idx at = i;
    at[axis] = FloorDiv(i[axis], block);
    return at;
  }
};

absl::StatusOr<Granularity> GranularityOf(const OpContext& context) {
  const Shape &x = context.ShapeOf(0), &scale = context.ShapeOf(1);
  const int64_t block = context.attrs.Int("block_size");
  const bool scalar = NumElements(scale) == 1 && block == 0;
  if (context.Has(2) && context.ShapeOf(2) != scale && !(scalar && NumElements(context.ShapeOf(2)) == 1)) {
    return context.Error(absl::StrCat("zero point ", ShapeToString(context.ShapeOf(2)), " and scale ",
                                      ShapeToString(scale), " must have one shape"));
  }
  if (block < 0) return context.Error(absl::StrCat("block_size=", block, " is negative"));
  if (scalar) return Granularity{};
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", 1), context.Rank(0)));
  Shape wanted = {x[axis]};
  if (block > 0) {
    wanted = x;
    wanted[axis] = (x[axis] + block - 1) / block;
  }
  if (scale != wanted) {
    return context.Error(absl::StrCat("scale has shape ", ShapeToString(scale), "; a scalar or ", ShapeToString(wanted),
                                      " fits x ", ShapeToString(x)));
  }
  return Granularity{axis, block};
}

// Returns the scale or zero point at a position of x as `dtype`; an absent zero point is 0.
Scalar ParameterAt(const LowerContext& context, int input, const Granularity& granularity, const Idx& i, DType dtype) {
  if (!context.Has(input)) return Imm(dtype, 0);
  return te::Cast(dtype, context.builder->At(context.in[input], granularity.At(context.ShapeOf(input), i)));
}

// x / scale as a tensor of its own: ONNX rounds ties of the quotient in the type of the division, so the quotient must
// be rounded to that type first.
te::TensorId Quotient(te::Builder& b, te::TensorId x, DType type, const std::function<Scalar(const Idx& i)>& scale) {
  const DType compute = ComputeType(type);
  return b.Map("quotient", type, b.info(x).shape, [&](const Idx& i) {
    return te::Cast(type, te::Cast(compute, te::Cast(type, b.At(x, i))) / te::Cast(compute, te::Cast(type, scale(i))));
  });
}

// Returns the type of the division: `precision` if given, else the scale's type; f32 where that type cannot divide.
absl::StatusOr<DType> QuotientType(const OpContext& context) {
  const int64_t number = context.attrs.Int("precision");
  const std::optional<DType> named = number == 0 ? context.Type(1).dtype : DTypeFromOnnx(number);
  const bool divides = named && IsFloat(*named) && !IsByteFloat(*named) && *named != DType::kF64;
  if (divides) return *named;
  if (number == 0) return DType::kF32;
  return context.Unsupported(absl::StrCat("element type ", number, " (precision) is none to divide in"));
}

absl::StatusOr<Types> InferQuantize(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckDomain(context, 1, Domain::kNumeric));
  RETURN_IF_ERROR(GranularityOf(context).status());
  RETURN_IF_ERROR(QuotientType(context).status());
  DType dtype = DType::kU8;
  if (const int64_t number = context.attrs.Int("output_dtype"); number != 0) {
    const std::optional<DType> named = DTypeFromOnnx(number);
    if (!named) return context.Unsupported(absl::StrCat("element type ", number, " (output_dtype) is not supported"));
    dtype = *named;
  }
  if (context.Has(2)) {
    if (context.attrs.Int("output_dtype") != 0 && dtype != context.Type(2).dtype) {
      return context.Error(
          absl::StrCat("output_dtype is ", DTypeName(dtype), ", the zero point ", DTypeName(context.Type(2).dtype)));
    }
    dtype = context.Type(2).dtype;
  }
  const bool integer = IsInteger(dtype) && DTypeBytes(dtype) <= 2;
  if (!integer && (!IsByteFloat(dtype) || dtype == DType::kF8E8M0)) {
    return context.Error(
        absl::StrCat("quantizes to integers of at most 16 bits and floats of at most 8, not ", DTypeName(dtype)));
  }
  return Types{{dtype, context.ShapeOf(0)}};
}

absl::Status LowerQuantize(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(context));
  const ecg::ValueType& type = context.output_types[0];
  ASSIGN_OR_RETURN(const DType divided, QuotientType(context));
  const te::TensorId quotient = Quotient(b, context.in[0], divided, [&](const Idx& i) {
    return b.At(context.in[1], granularity.At(context.ShapeOf(1), i));
  });
  const bool saturate = context.attrs.Int("saturate", 1) != 0;
  context.out[0] = b.Map("QuantizeLinear", type.dtype, type.shape, [&](const Idx& i) {
    const Scalar y = te::Cast(DType::kF32, b.At(quotient, i));
    const Scalar zero_point = ParameterAt(context, 2, granularity, i, DType::kF32);
    return IsFloat(type.dtype) ? Round(y, zero_point, type.dtype, saturate) : Saturate(y, zero_point, type.dtype);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferDequantize(const OpContext& context, int) {
  const DType from = context.Type(0).dtype;
  if (!IsInteger(from) && (!IsByteFloat(from) || from == DType::kF8E8M0)) {
    return context.Error(absl::StrCat("input 0 of type ", DTypeName(from), " is not allowed"));
  }
  RETURN_IF_ERROR(CheckDomain(context, 1, Domain::kFloat));
  if (context.Has(2)) {
    if (context.Type(2).dtype != context.Type(0).dtype) {
      return context.Error(absl::StrCat("x is ", DTypeName(context.Type(0).dtype), ", its zero point ",
                                        DTypeName(context.Type(2).dtype)));
    }
  }
  RETURN_IF_ERROR(GranularityOf(context).status());
  DType dtype = context.Type(1).dtype;
  if (const int64_t number = context.attrs.Int("output_dtype"); number != 0) {
    const std::optional<DType> named = DTypeFromOnnx(number);
    if (!named) return context.Unsupported(absl::StrCat("element type ", number, " (output_dtype) is not supported"));
    dtype = *named;
  }
  if (!IsFloat(dtype) || IsByteFloat(dtype)) {
    return context.Error(absl::StrCat("dequantizes to a float of 16 bits or more, not ", DTypeName(dtype),
                                      "; output_dtype names one"));
  }
  return Types{{dtype, context.ShapeOf(0)}};
}

absl::Status LowerDequantize(LowerContext& context) {
  te::Builder& b = *context.builder;
  ASSIGN_OR_RETURN(const Granularity granularity, GranularityOf(context));
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("DequantizeLinear", type.dtype, type.shape, [&](const Idx& i) {
    const DType wide = IsFloat(context.Type(0).dtype) ? DType::kF32 : DType::kI32;
    const Scalar code = te::Cast(wide, b.At(context.in[0], i));
    const Scalar x = context.Has(2) || wide == DType::kI32
                         ? code - ParameterAt(context, 2, granularity, i, wide)
                         : code;
    return te::Cast(type.dtype, te::Cast(DType::kF32, x) * ParameterAt(context, 1, granularity, i, DType::kF32));
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
  const te::TensorId low = b.Reduce("low", ReductionKind::kMin, DType::kF32, DType::kF32, {}, shape, x,
                                    [&](const Idx&, const Scalar& acc) { return te::Min(acc, zero); });
  const te::TensorId high = b.Reduce("high", ReductionKind::kMax, DType::kF32, DType::kF32, {}, shape, x,
                                     [&](const Idx&, const Scalar& acc) { return te::Max(acc, zero); });
  const te::TensorId scale = b.Map("scale", DType::kF32, {}, [&](const Idx&) {
    const Scalar range = b.At(high, {}) - b.At(low, {});
    // If all elements are zero, any scale but 0 will do.
    return te::Select(Call(Op::kEq, {range, zero}), Imm(DType::kF32, 1), range / Imm(DType::kF32, 255));
  });
  const te::TensorId zero_point = b.Map("zero_point", DType::kU8, {}, [&](const Idx&) {
    return Saturate((zero - b.At(low, {})) / b.At(scale, {}), zero, DType::kU8);
  });
  const te::TensorId quotient = Quotient(b, context.in[0], DType::kF32, [&](const Idx&) { return b.At(scale, {}); });
  const te::TensorId y = b.Map("y", DType::kU8, shape, [&](const Idx& i) {
    return Saturate(b.At(quotient, i), te::Cast(DType::kF32, b.At(zero_point, {})), DType::kU8);
  });
  const te::TensorId all[] = {y, scale, zero_point};
  for (size_t k = 0; k < context.out.size(); ++k) context.out[k] = all[k];
  return absl::OkStatus();
}

OpDef Define(const char* name, int min_inputs, int max_inputs) {
  OpDef def;
  def.name = name;
  def.min_inputs = min_inputs;
  def.max_inputs = max_inputs;
  def.mapping = Always(MappingType::kManyToMany);
  return def;
}

}  // namespace

std::vector<OpDef> QuantizeOps() {
  const auto per_element = [](double flops) {
    return [flops](const OpContext&, const Types& outputs) { return flops * NumElements(outputs[0].shape); };
  };
  OpDef quantize = Define("QuantizeLinear", 2, 3);
  quantize.attrs = {{"axis", AttrKind::kInt},
                    {"block_size", AttrKind::kInt},
                    {"output_dtype", AttrKind::kInt},
                    {"saturate", AttrKind::kInt},
                    {"precision", AttrKind::kInt}};
  quantize.mapping = Always(MappingType::kOneToOne);
  quantize.infer = InferQuantize;
  quantize.flops = [](const OpContext& context, const Types& outputs) -> double {
    const Tensor* scale = context.Constant(1);
    const bool divides = scale == nullptr || scale->num_elements() != 1 || scale->GetDouble(0) != 1;
    return (divides ? 3.0 : 2.0) * NumElements(outputs[0].shape);
  };
  quantize.narrow_types = true;
  quantize.lower = LowerQuantize;

  OpDef dequantize = Define("DequantizeLinear", 2, 3);
  dequantize.attrs = {
      {"axis", AttrKind::kInt}, {"block_size", AttrKind::kInt}, {"output_dtype", AttrKind::kInt}};
  dequantize.mapping = Always(MappingType::kOneToOne);
  dequantize.infer = InferDequantize;
  dequantize.flops = per_element(2);
  dequantize.narrow_types = true;
  dequantize.lower = LowerDequantize;

  OpDef dynamic = Define("DynamicQuantizeLinear", 1, 1);
  dynamic.num_outputs = 3;
  dynamic.infer = InferDynamicQuantize;
  dynamic.flops = per_element(5);
  dynamic.lower = LowerDynamicQuantize;
  return {quantize, dequantize, dynamic};
}

}  // namespace fusion::ops
