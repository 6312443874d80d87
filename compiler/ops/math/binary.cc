// Elementwise operators with several inputs that are broadcast together.
#include <cmath>

#include <limits>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/broadcast.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Op;
using te::Scalar;
using Types = std::vector<ecg::ValueType>;
using Body = std::function<Scalar(const std::vector<Scalar>& x, const ecg::Attributes& attrs)>;

// An operator whose inputs have one type and are broadcast together; the body combines all of them.
struct BroadcastOp {
  const char* name;
  Domain domain;
  Body body;
  bool predicate = false;  // result is bool
  bool variadic = false;   // one or more inputs; otherwise exactly two
  MathProperties math = {};
  std::vector<AttrSpec> attrs = {};
};

Body Chain(Op op) {
  return [op](const std::vector<Scalar>& x, const ecg::Attributes&) {
    Scalar result = x[0];
    for (size_t i = 1; i < x.size(); ++i) result = Call(op, {result, x[i]});
    return result;
  };
}

Scalar Mean(const std::vector<Scalar>& x, const ecg::Attributes& attrs) {
  return Chain(Op::kAdd)(x, attrs) / Imm(x[0]->dtype, static_cast<double>(x.size()));
}

Scalar Mod(const std::vector<Scalar>& x, const ecg::Attributes& attrs) {
  return Call(attrs.Int("fmod") != 0 ? Op::kFMod : Op::kMod, {x[0], x[1]});
}

// For signed integers (since opset 28) a right shift fills with the sign bit, also where the amount is negative or too
// large.
Scalar BitShift(const std::vector<Scalar>& x, const ecg::Attributes& attrs) {
  const bool left = attrs.String("direction") == "LEFT";
  if (left || !IsSigned(x[0]->dtype)) return Call(left ? Op::kShl : Op::kShr, {x[0], x[1]});
  const Scalar zero = te::ImmInt(x[0]->dtype, 0), last = te::ImmInt(x[0]->dtype, 8 * DTypeBytes(x[0]->dtype) - 1);
  const Scalar inside = Call(Op::kAnd, {Call(Op::kGe, {x[1], zero}), Call(Op::kLe, {x[1], last})});
  return Call(Op::kShr, {x[0], te::Select(inside, x[1], last)});
}

std::vector<BroadcastOp> Table() {
  constexpr Domain kFloat = Domain::kFloat, kNumeric = Domain::kNumeric, kInteger = Domain::kInteger,
                   kBool = Domain::kBool;
  constexpr bool kPredicate = true, kVariadic = true;
  constexpr MathProperties kSemigroup{.associative = true, .commutative = true};
  constexpr MathProperties kRing{.associative = true, .commutative = true, .distributive = true};
  constexpr MathProperties kDistributes{.distributive = true};
  constexpr MathProperties kCommutes{.commutative = true};
  return {
      {"Add", kNumeric, Chain(Op::kAdd), false, false, kRing},
      {"Sub", kNumeric, Chain(Op::kSub), false, false, kDistributes},
      {"Mul", kNumeric, Chain(Op::kMul), false, false, kRing},
      {"Div", kNumeric, Chain(Op::kDiv), false, false, kDistributes},
      {"Mod", kNumeric, Mod, false, false, {}, {{"fmod", AttrKind::kInt}}},
      {"And", kBool, Chain(Op::kAnd), false, false, kRing},
      {"Or", kBool, Chain(Op::kOr), false, false, kRing},
      {"Xor", kBool, Chain(Op::kXor), false, false, kSemigroup},
      {"BitwiseAnd", kInteger, Chain(Op::kBitAnd), false, false, kRing},
      {"BitwiseOr", kInteger, Chain(Op::kBitOr), false, false, kRing},
      {"BitwiseXor", kInteger, Chain(Op::kBitXor), false, false, kSemigroup},
      {"BitShift",
       kInteger,
       BitShift,
       false,
       false,
       kCommutes,
       {{"direction", AttrKind::kString, true, {"LEFT", "RIGHT"}}}},
      {"Equal", Domain::kAny, Chain(Op::kEq), kPredicate},
      {"Greater", kNumeric, Chain(Op::kGt), kPredicate},
      {"GreaterOrEqual", kNumeric, Chain(Op::kGe), kPredicate},
      {"Less", kNumeric, Chain(Op::kLt), kPredicate},
      {"LessOrEqual", kNumeric, Chain(Op::kLe), kPredicate},
      {"Max", kNumeric, Chain(Op::kMax), false, kVariadic, kSemigroup},
      {"Min", kNumeric, Chain(Op::kMin), false, kVariadic, kSemigroup},
      {"Sum", kFloat, Chain(Op::kAdd), false, kVariadic, kSemigroup},
      {"Mean", kFloat, Mean, false, kVariadic, {.commutative = true}},
  };
}

MappingType MapBroadcast(const OpContext& context, int input) {
  const auto shape = BroadcastInputs(context, 0, static_cast<int>(context.inputs.size()));
  return shape.ok() ? BroadcastMapping(context, input, *shape) : MappingType::kOneToMany;
}

double FlopsPerElement(double ops, const Types& outputs) { return ops * NumElements(outputs[0].shape); }

// Reshapes input 1 to [given.., 1, ..] with `axes` trailing ones.
absl::Status AppendUnitAxes(ImportContext& context, int64_t axes) {
  Shape shape = context.input(1)->type.shape;
  shape.insert(shape.end(), axes, 1);
  const ecg::ValueId target =
      context.AddConstant(Tensor::From(DType::kI64, {static_cast<int64_t>(shape.size())}, shape));
  ASSIGN_OR_RETURN(const auto reshaped, context.AddNode("Reshape", {context.node().inputs[1], target}, {}));
  context.node().inputs[1] = reshaped[0];
  return absl::OkStatus();
}

// Before opset 7 the second input was broadcast only where `broadcast` was set; its first axis met axis `axis` of the
// first input.
absl::Status NormalizeLegacyBroadcast(ImportContext& context) {
  ecg::Attributes& attrs = context.node().attrs;
  if (context.opset() >= 7) return absl::OkStatus();
  const bool aligned = attrs.Has("axis") && context.input(0) != nullptr && context.input(1) != nullptr;
  const int64_t axis = attrs.Int("axis");
  for (const char* name : {"axis", "broadcast", "consumed_inputs"}) attrs.Erase(name);
  if (!aligned) return absl::OkStatus();
  const int64_t rank = static_cast<int64_t>(context.input(0)->type.shape.size());
  const int64_t behind =
      rank - (axis < 0 ? axis + rank : axis) - static_cast<int64_t>(context.input(1)->type.shape.size());
  return behind > 0 ? AppendUnitAxes(context, behind) : absl::OkStatus();
}

// Before opset 7 a slope with one axis belonged to the channels.
absl::Status NormalizePRelu(ImportContext& context) {
  const ecg::Value *x = context.input(0), *slope = context.input(1);
  if (context.opset() >= 7 || x == nullptr || slope == nullptr || slope->type.shape.size() != 1) {
    return absl::OkStatus();
  }
  const int64_t behind = static_cast<int64_t>(x->type.shape.size()) - 2;
  return behind > 0 && slope->type.shape[0] > 1 ? AppendUnitAxes(context, behind) : absl::OkStatus();
}

OpDef Define(const BroadcastOp& op) {
  OpDef def;
  def.normalize = NormalizeLegacyBroadcast;
  def.name = op.name;
  def.min_inputs = op.variadic ? 1 : 2;
  def.max_inputs = op.variadic ? -1 : 2;
  def.attrs = op.attrs;
  def.math = op.math;
  def.mapping = MapBroadcast;
  def.infer = [op](const OpContext& context, int) -> absl::StatusOr<Types> {
    const int n = static_cast<int>(context.inputs.size());
    for (int i = 0; i < n; ++i) {
      if (!context.Has(i)) return context.Error(absl::StrCat("input ", i, " is missing"));
      RETURN_IF_ERROR(CheckDomain(context, i, op.domain));
    }
    RETURN_IF_ERROR(CheckSameType(context, 0, n));
    ASSIGN_OR_RETURN(Shape shape, BroadcastInputs(context, 0, n));
    return Types{{op.predicate ? DType::kBool : context.Type(0).dtype, std::move(shape)}};
  };
  def.flops = [body = op.body](const OpContext& context, const Types& outputs) {
    std::vector<Scalar> x;
    for (size_t i = 0; i < context.inputs.size(); ++i) {
      x.push_back(te::Acc(static_cast<int>(i), ComputeType(context.Type(0).dtype)));
    }
    return FlopsPerElement(CountOps(body(x, context.attrs)), outputs);
  };
  def.lower = [body = op.body](LowerContext& context) {
    te::Builder& b = *context.builder;
    const ecg::ValueType& type = context.output_types[0];
    context.out[0] = b.Map(context.op, type.dtype, type.shape, [&](const te::Builder::Idx& i) {
      std::vector<Scalar> x;
      for (size_t k = 0; k < context.in.size(); ++k) {
        x.push_back(LoadCompute(b, context.in[k], BroadcastIndex(context.ShapeOf(k), i)));
      }
      return te::Cast(type.dtype, body(x, context.attrs));
    });
    return absl::OkStatus();
  };
  return def;
}

// Pow: the result has the type of the base; the exponent may have another.
absl::StatusOr<Types> InferPow(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckDomain(context, 1, Domain::kNumeric));
  ASSIGN_OR_RETURN(Shape shape, BroadcastInputs(context, 0, 2));
  return Types{{context.Type(0).dtype, std::move(shape)}};
}

// Returns x^0.5 as IEEE's pow defines it: negative zero gives zero and minus infinity gives infinity, where a square
// root gives -0 and NaN.
Scalar RootAsPower(const Scalar& x) {
  const double inf = std::numeric_limits<double>::infinity();
  const Scalar root = Call(Op::kSqrt, {x + Imm(x->dtype, 0)});
  return te::Select(Call(Op::kEq, {x, Imm(x->dtype, -inf)}), Imm(x->dtype, inf), root);
}
// Returns small constant exponents as products, because pow costs as much as forty multiplications; null for any other
// exponent.
Scalar PowByProducts(const Scalar& x, double exponent) {
  if (exponent == 1) return x;
  if (exponent == 2) return x * x;
  if (exponent == 3) return x * x * x;
  if (exponent == 4) return (x * x) * (x * x);
  if (!IsFloat(x->dtype)) return nullptr;
  if (exponent == -1) return Imm(x->dtype, 1) / x;
  if (exponent == -2) return Imm(x->dtype, 1) / (x * x);
  if (exponent == 0.5) return RootAsPower(x);
  if (exponent == -0.5) return Imm(x->dtype, 1) / RootAsPower(x);
  return nullptr;
}

absl::Status LowerPow(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const Tensor* constant = context.Constant(1);
  // Integer bases go through f64, which holds their powers exactly up to 2^53.
  const DType compute = IsFloat(type.dtype) ? ComputeType(type.dtype) : DType::kF64;
  context.out[0] = b.Map("Pow", type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    const Scalar base = LoadCompute(b, context.in[0], BroadcastIndex(context.ShapeOf(0), i));
    Scalar exponent;
    if (constant != nullptr && constant->num_elements() == 1) {
      const Scalar product = PowByProducts(base, constant->GetDouble(0));
      if (product != nullptr) return te::Cast(type.dtype, product);
      exponent = Imm(compute, constant->GetDouble(0));
    } else {
      exponent = te::Cast(compute, b.At(context.in[1], BroadcastIndex(context.ShapeOf(1), i)));
    }
    return te::Cast(type.dtype, Call(Op::kPow, {te::Cast(compute, base), exponent}));
  });
  return absl::OkStatus();
}

// PRelu: the slope is broadcast to x, but x is never broadcast to the slope.
absl::StatusOr<Types> InferPRelu(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckSameType(context, 0, 2));
  ASSIGN_OR_RETURN(Shape shape, BroadcastInputs(context, 0, 2));
  if (shape != context.ShapeOf(0)) {
    return context.Error(absl::StrCat("slope ", ShapeToString(context.ShapeOf(1)), " does not broadcast to ",
                                      ShapeToString(context.ShapeOf(0))));
  }
  return Types{context.Type(0)};
}

absl::Status LowerPRelu(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("PRelu", type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    const Scalar x = LoadCompute(b, context.in[0], i);
    const Scalar slope = LoadCompute(b, context.in[1], BroadcastIndex(context.ShapeOf(1), i));
    return te::Cast(type.dtype, te::Select(Call(Op::kLt, {x, Imm(x->dtype, 0)}), slope * x, x));
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferWhere(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kBool));
  RETURN_IF_ERROR(CheckSameType(context, 1, 3));
  ASSIGN_OR_RETURN(Shape shape, BroadcastInputs(context, 0, 3));
  return Types{{context.Type(1).dtype, std::move(shape)}};
}

absl::Status LowerWhere(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("Where", type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    const auto load = [&](int k) { return b.At(context.in[k], BroadcastIndex(context.ShapeOf(k), i)); };
    return te::Select(load(0), load(1), load(2));
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferClip(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckDomain(context, 0, Domain::kNumeric));
  RETURN_IF_ERROR(CheckSameType(context, 0, 3));
  for (int i = 1; i < 3; ++i) {
    if (context.Has(i) && NumElements(context.ShapeOf(i)) != 1) {
      return context.Error(
          absl::StrCat(i == 1 ? "min" : "max", " must be a scalar, not ", ShapeToString(context.ShapeOf(i))));
    }
  }
  return Types{context.Type(0)};
}

absl::Status LowerClip(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("Clip", type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    Scalar x = LoadCompute(b, context.in[0], i);
    const auto limit = [&](int k) {
      const Tensor* constant = context.Constant(k);
      if (constant == nullptr) return LoadCompute(b, context.in[k], te::Builder::Idx(context.Rank(k), te::Index(0)));
      return IsFloat(x->dtype) ? Imm(x->dtype, constant->GetDouble(0)) : te::ImmInt(x->dtype, constant->GetInt(0));
    };
    if (context.Has(1)) x = te::Max(x, limit(1));
    if (context.Has(2)) x = te::Min(x, limit(2));
    return te::Cast(type.dtype, x);
  });
  return absl::OkStatus();
}

// Before opset 11 the limits were attributes.
absl::Status NormalizeClip(ImportContext& context) {
  if (context.opset() >= 11) return absl::OkStatus();
  const DType dtype = context.input(0) != nullptr ? context.input(0)->type.dtype : DType::kF32;
  int index = 1;
  for (const char* name : {"min", "max"}) {
    if (context.node().attrs.Has(name)) {
      const ecg::ValueId id = context.AddConstant(Tensor::From<double>(dtype, {}, {context.node().attrs.Float(name)}));
      context.node().inputs.resize(std::max<size_t>(context.node().inputs.size(), index + 1), ecg::kNone);
      context.node().inputs[index] = id;
      context.node().attrs.Erase(name);
    }
    ++index;
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> BinaryOps() {
  std::vector<OpDef> ops;
  for (const BroadcastOp& op : Table()) ops.push_back(Define(op));
  const auto flops = [](double per_element) {
    return [per_element](const OpContext&, const Types& outputs) { return FlopsPerElement(per_element, outputs); };
  };

  OpDef pow;
  pow.name = "Pow";
  pow.min_inputs = pow.max_inputs = 2;
  pow.math = {.commutative = true};
  pow.infer = InferPow;
  pow.mapping = MapBroadcast;
  pow.flops = flops(1);
  pow.lower = LowerPow;
  pow.normalize = NormalizeLegacyBroadcast;
  ops.push_back(pow);

  OpDef prelu;
  prelu.name = "PRelu";
  prelu.min_inputs = prelu.max_inputs = 2;
  prelu.infer = InferPRelu;
  // Table 2 lists PRelu as One-to-One, because the slope is a parameter.
  prelu.mapping = Always(MappingType::kOneToOne);
  prelu.flops = flops(2);
  prelu.lower = LowerPRelu;
  prelu.normalize = NormalizePRelu;
  ops.push_back(prelu);

  OpDef where;
  where.name = "Where";
  where.min_inputs = where.max_inputs = 3;
  where.infer = InferWhere;
  where.mapping = MapBroadcast;
  where.flops = flops(1);
  where.lower = LowerWhere;
  ops.push_back(where);

  OpDef clip;
  clip.name = "Clip";
  clip.max_inputs = 3;
  clip.roles = {InputRole::kData, InputRole::kScalar, InputRole::kScalar};
  clip.infer = InferClip;
  clip.mapping = Always(MappingType::kOneToOne);
  clip.flops = flops(2);
  clip.lower = LowerClip;
  clip.normalize = NormalizeClip;
  ops.push_back(clip);
  return ops;
}

}  // namespace fusion::ops
