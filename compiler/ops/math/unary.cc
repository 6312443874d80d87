// Elementwise operators with one input, one line each.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Call;
using te::Imm;
using te::Op;
using te::Scalar;
using te::Select;
using Attrs = ecg::Attributes;
using Body = std::function<Scalar(const Scalar& x, const Attrs& attrs)>;

struct UnaryOp {
  const char* name;
  Domain domain;
  Body body;
  std::vector<AttrSpec> attrs = {};
  MathProperties math = {};
  bool predicate = false;  // result is bool
};

// Returns a constant of x's type.
Scalar C(const Scalar& x, double value) { return Imm(x->dtype, value); }
Scalar Exp(const Scalar& x) { return Call(Op::kExp, {x}); }
Scalar Neg(const Scalar& x) { return Call(Op::kNeg, {x}); }
Scalar Less(const Scalar& a, const Scalar& b) { return Call(Op::kLt, {a, b}); }
Scalar Greater(const Scalar& a, const Scalar& b) { return Call(Op::kGt, {a, b}); }
// min(max(x, low), high); NaN stays NaN.
Scalar Clamp(const Scalar& x, double low, double high) { return te::Min(te::Max(x, C(x, low)), C(x, high)); }

// 1 + e^x. Far below, e^x changes no sum of this kind in any type, and what is cut there is known not to underflow.
Scalar OnePlusExp(const Scalar& x) { return C(x, 1) + Exp(te::Max(x, C(x, -86))); }
// e^x where x is negative, and anything but an overflow elsewhere.
Scalar ExpOfNegative(const Scalar& x) { return Exp(te::Min(x, C(x, 0))); }

// log(1 + e^x) without overflow, exact to rounding where it is small: log(1 + n) is log(u) for the rounded sum u, and
// what rounding has lost of n. The logarithm is not negative, which Abs tells value ranges.
Scalar Softplus(const Scalar& x) {
  const Scalar n = Exp(Neg(Call(Op::kAbs, {x}))), u = C(x, 1) + n;
  return te::Max(x, C(x, 0)) + Call(Op::kAbs, {Call(Op::kLog, {u}) + (n - (u - C(x, 1)))});
}

// tanh(log(1 + n)) with n = e^x is t / (t + 2) with t = n (n + 2). This takes one exponential instead of three
// transcendental functions and is exact to rounding where n is small. From x = 20 on the result is 1 in every type.
Scalar TanhOfSoftplus(const Scalar& x) {
  const Scalar n = Exp(te::Min(x, C(x, 20)));
  const Scalar t = n * (n + C(x, 2));
  return t / (t + C(x, 2));
}

Scalar Gelu(const Scalar& x, const Attrs& attrs) {
  if (attrs.String("approximate", "none") == "tanh") {
    const Scalar inner = C(x, std::sqrt(2 / M_PI)) * (x + C(x, 0.044715) * x * x * x);
    return C(x, 0.5) * x * (C(x, 1) + Call(Op::kTanh, {inner}));
  }
  return C(x, 0.5) * x * (C(x, 1) + Call(Op::kErf, {x * C(x, M_SQRT1_2)}));
}

Scalar IsInf(const Scalar& x, const Attrs& attrs) {
  const bool negative = attrs.Int("detect_negative", 1) != 0, positive = attrs.Int("detect_positive", 1) != 0;
  if (!negative && !positive) return te::ImmInt(DType::kBool, 0);
  Scalar any = Call(Op::kIsInf, {x});
  if (negative && positive) return any;
  return Call(Op::kAnd, {any, negative ? Less(x, C(x, 0)) : Greater(x, C(x, 0))});
}

Scalar Shrink(const Scalar& x, const Attrs& attrs) {
  // Integers are compared in f32, because thresholds may be fractional.
  const DType dtype = IsFloat(x->dtype) ? x->dtype : DType::kF32;
  const Scalar v = te::Cast(dtype, x);
  const double lambd = attrs.Float("lambd", 0.5), bias = attrs.Float("bias", 0.0);
  return te::Cast(x->dtype, Select(Less(v, C(v, -lambd)), v + C(v, bias),
                                   Select(Greater(v, C(v, lambd)), v - C(v, bias), C(v, 0))));
}

Body Plain(Op op) {
  return [op](const Scalar& x, const Attrs&) { return Call(op, {x}); };
}

std::vector<UnaryOp> Table() {
  constexpr Domain kFloat = Domain::kFloat, kNumeric = Domain::kNumeric;
  const AttrSpec alpha{"alpha", AttrKind::kFloat}, beta{"beta", AttrKind::kFloat}, gamma{"gamma", AttrKind::kFloat};
  // Homomorphisms of multiplication take part in associative and commutative rewrites (Table 4: Recip, Sqrt, Abs, Exp).
  constexpr MathProperties kMultiplicative{.associative = true, .commutative = true};
  constexpr MathProperties kCommutes{.commutative = true};
  constexpr MathProperties kLinear{.commutative = true, .distributive = true};
  return {
      {"Abs", kNumeric, Plain(Op::kAbs), {}, kMultiplicative},
      {"Acos", kFloat, Plain(Op::kAcos)},
      {"Acosh", kFloat, Plain(Op::kAcosh)},
      {"Asin", kFloat, Plain(Op::kAsin)},
      {"Asinh", kFloat, Plain(Op::kAsinh)},
      {"Atan", kFloat, Plain(Op::kAtan)},
      {"Atanh", kFloat, Plain(Op::kAtanh)},
      {"BitwiseNot", Domain::kInteger, Plain(Op::kBitNot)},
      {"Ceil", kFloat, Plain(Op::kCeil)},
      {"Celu",
       kFloat,
       [](const Scalar& x, const Attrs& a) {
         const Scalar al = C(x, a.Float("alpha", 1.0));
         return te::Max(C(x, 0), x) + te::Min(C(x, 0), al * (Exp(x / al) - C(x, 1)));
       },
       {alpha}},
      {"Cos", kFloat, Plain(Op::kCos)},
      {"Cosh", kFloat, Plain(Op::kCosh)},
      {"Elu",
       kFloat,
       [](const Scalar& x, const Attrs& a) {
         return Select(Less(x, C(x, 0)), C(x, a.Float("alpha", 1.0)) * (ExpOfNegative(x) - C(x, 1)), x);
       },
       {alpha}},
      {"Erf", kFloat, Plain(Op::kErf)},
      {"Exp", kFloat, Plain(Op::kExp), {}, kCommutes},
      {"Floor", kFloat, Plain(Op::kFloor)},
      {"Gelu", kFloat, Gelu, {{"approximate", AttrKind::kString, false, {"none", "tanh"}}}},
      {"HardSigmoid",
       kFloat,
       [](const Scalar& x, const Attrs& a) {
         return Clamp(C(x, a.Float("alpha", 0.2)) * x + C(x, a.Float("beta", 0.5)), 0, 1);
       },
       {alpha, beta}},
      {"HardSwish", kFloat,
       [](const Scalar& x, const Attrs&) { return x * Clamp(x * C(x, 1.0 / 6) + C(x, 0.5), 0, 1); }},
      {"IsInf", kFloat, IsInf, {{"detect_negative", AttrKind::kInt}, {"detect_positive", AttrKind::kInt}}, {}, true},
      {"IsNaN", kFloat, Plain(Op::kIsNan), {}, {}, true},
      {"LeakyRelu",
       kFloat,
       [](const Scalar& x, const Attrs& a) { return Select(Less(x, C(x, 0)), C(x, a.Float("alpha", 0.01)) * x, x); },
       {alpha}},
      {"Log", kFloat, Plain(Op::kLog), {}, kCommutes},
      {"Mish", kFloat, [](const Scalar& x, const Attrs&) { return x * TanhOfSoftplus(x); }},
      {"Neg", kNumeric, Plain(Op::kNeg), {}, kLinear},
      {"Not", Domain::kBool, Plain(Op::kNot)},
      {"Reciprocal", kFloat, [](const Scalar& x, const Attrs&) { return C(x, 1) / x; }, {}, kMultiplicative},
      {"Relu", kNumeric, [](const Scalar& x, const Attrs&) { return te::Max(x, C(x, 0)); }},
      {"Round", kFloat, Plain(Op::kRound)},
      {"Selu",
       kFloat,
       [](const Scalar& x, const Attrs& a) {
         const Scalar g = C(x, a.Float("gamma", 1.05070102214813232421875));
         const Scalar al = C(x, a.Float("alpha", 1.67326319217681884765625));
         return g * Select(Greater(x, C(x, 0)), x, al * ExpOfNegative(x) - al);
       },
       {alpha, gamma}},
      {"Shrink", kNumeric, Shrink, {{"bias", AttrKind::kFloat}, {"lambd", AttrKind::kFloat}}},
      {"Sigmoid", kFloat, [](const Scalar& x, const Attrs&) { return C(x, 1) / OnePlusExp(Neg(x)); }},
      {"Sign", kNumeric, Plain(Op::kSign)},
      {"Sin", kFloat, Plain(Op::kSin)},
      {"Sinh", kFloat, Plain(Op::kSinh)},
      {"Softplus", kFloat, [](const Scalar& x, const Attrs&) { return Softplus(x); }},
      {"Softsign", kFloat, [](const Scalar& x, const Attrs&) { return x / (C(x, 1) + Call(Op::kAbs, {x})); }},
      {"Sqrt", kFloat, Plain(Op::kSqrt), {}, kMultiplicative},
      {"Swish",
       kFloat,
       [](const Scalar& x, const Attrs& a) { return x / OnePlusExp(Neg(C(x, a.Float("alpha", 1.0)) * x)); },
       {alpha}},
      {"Tan", kFloat, Plain(Op::kTan)},
      {"Tanh", kFloat, Plain(Op::kTanh)},
      {"ThresholdedRelu",
       kFloat,
       [](const Scalar& x, const Attrs& a) { return Select(Greater(x, C(x, a.Float("alpha", 1.0))), x, C(x, 0)); },
       {alpha}},
  };
}

OpDef Define(const UnaryOp& op) {
  OpDef def;
  def.name = op.name;
  def.attrs = op.attrs;
  def.math = op.math;
  def.mapping = Always(MappingType::kOneToOne);
  def.infer = [domain = op.domain, predicate = op.predicate](const OpContext& context,
                                                             int) -> absl::StatusOr<std::vector<ecg::ValueType>> {
    RETURN_IF_ERROR(CheckDomain(context, 0, domain));
    const ecg::ValueType& x = context.Type(0);
    return std::vector<ecg::ValueType>{{predicate ? DType::kBool : x.dtype, x.shape}};
  };
  def.flops = [body = op.body](const OpContext& context, const std::vector<ecg::ValueType>& outputs) {
    const Scalar x = te::Acc(0, ComputeType(context.Type(0).dtype));
    return NumElements(outputs[0].shape) * CountOps(body(x, context.attrs));
  };
  def.lower = [body = op.body](LowerContext& context) {
    te::Builder& b = *context.builder;
    const ecg::ValueType& type = context.output_types[0];
    context.out[0] = b.Map(context.op, type.dtype, type.shape, [&](const te::Builder::Idx& i) {
      return te::Cast(type.dtype, body(LoadCompute(b, context.in[0], i), context.attrs));
    });
    return absl::OkStatus();
  };
  return def;
}

}  // namespace

std::vector<OpDef> UnaryOps() {
  std::vector<OpDef> ops;
  for (const UnaryOp& op : Table()) ops.push_back(Define(op));
  return ops;
}

}  // namespace fusion::ops
