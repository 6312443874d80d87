// Cast and CastLike.
//
// Casts to floats of 8 bits saturate unless the attribute says otherwise. For f8e8m0, ONNX's table of casts decides
// where its reference implementation differs from it: infinity saturates to the largest power; without saturation,
// everything outside the range of the powers becomes NaN.
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/saturate.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

using te::Scalar;

absl::Status CheckRoundMode(const OpContext& context) {
  const std::string mode = context.attrs.String("round_mode", "up");
  if (mode == "up" || mode == "down" || mode == "nearest") return absl::OkStatus();
  return context.Error(absl::StrCat("round_mode is '", mode, "', not up, down or nearest"));
}

absl::StatusOr<Types> InferCast(const OpContext& context, int) {
  const int64_t to = context.attrs.Int("to");
  const std::optional<DType> dtype = DTypeFromOnnx(to);
  if (!dtype) return context.Unsupported(absl::StrCat("element type ", to, " (to) is not supported"));
  RETURN_IF_ERROR(CheckRoundMode(context));
  return Types{{*dtype, context.ShapeOf(0)}};
}

absl::StatusOr<Types> InferCastLike(const OpContext& context, int) {
  RETURN_IF_ERROR(CheckRoundMode(context));
  return Types{{context.Type(1).dtype, context.ShapeOf(0)}};
}

// Returns the power of two that f8e8m0 holds for x. A cast to f8e8m0 rounds to the nearest; the modes "up" and "down"
// correct that by one power.
Scalar ToPower(const Scalar& x, bool saturate, const std::string& mode) {
  const auto number = [](double value) { return te::Imm(DType::kF32, value); };
  const double least = 0x1p-127, most = 0x1p127;
  const Scalar held = te::Max(te::Min(te::Cast(DType::kF32, x), number(most)), number(least));
  const Scalar near = te::Cast(DType::kF32, te::Cast(DType::kF8E8M0, held));
  Scalar power = near;
  if (mode == "up") {
    power = te::Select(te::Call(te::Op::kLt, {near, held}), near * number(2), near);
  } else if (mode == "down") {
    power = te::Select(te::Call(te::Op::kGt, {near, held}), near * number(0.5), near);
  }
  if (!saturate) {
    const Scalar wide = te::Cast(DType::kF32, x);
    // Zero needs its own comparison: a device may treat the least power, a subnormal, as zero.
    const Scalar below =
        te::Call(te::Op::kOr, {te::Call(te::Op::kLe, {wide, number(0)}), te::Call(te::Op::kLt, {wide, number(least)})});
    const Scalar outside = te::Call(te::Op::kOr, {below, te::Call(te::Op::kGt, {wide, number(most)})});
    power = te::Select(outside, number(std::numeric_limits<double>::quiet_NaN()), power);
  }
  return te::Cast(DType::kF8E8M0, power);
}

absl::Status LowerCast(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  const bool saturate = context.attrs.Int("saturate", 1) != 0;
  const std::string mode = context.attrs.String("round_mode", "up");
  context.out[0] = b.Map("Cast", type.dtype, type.shape, [&](const te::Builder::Idx& i) {
    const Scalar x = b.At(context.in[0], i);
    if (x->dtype == type.dtype) return x;
    if (type.dtype == DType::kF8E8M0) return ToPower(x, saturate, mode);
    return te::Cast(type.dtype, saturate ? HeldForFloat8(x, type.dtype) : x);
  });
  return absl::OkStatus();
}

OpDef Define(const char* name) {
  OpDef def;
  def.name = name;
  def.mapping = Always(MappingType::kOneToOne);
  def.flops = [](const OpContext&, const Types& outputs) -> double { return NumElements(outputs[0].shape); };
  def.narrow_types = true;
  def.lower = LowerCast;
  return def;
}

// CastLike reads the type of its second operand alone, so the shapes of the two need not fit, at run time either.
absl::Status NormalizeCastLike(ImportContext& import) {
  ecg::Node& node = import.node();
  if (node.inputs.size() != 2 || import.input(0) == nullptr || import.input(1) == nullptr) return absl::OkStatus();
  node.attrs.Set("to", OnnxNumber(import.input(1)->type.dtype));
  node.inputs.resize(1);
  node.op = "Cast";
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> CastOps() {
  OpDef cast = Define("Cast");
  cast.attrs = {{"to", AttrKind::kInt, true}, {"saturate", AttrKind::kInt}, {"round_mode", AttrKind::kString}};
  cast.infer = InferCast;
  OpDef cast_like = Define("CastLike");
  cast_like.min_inputs = cast_like.max_inputs = 2;
  cast_like.attrs = {{"saturate", AttrKind::kInt}, {"round_mode", AttrKind::kString}};
  cast_like.infer = InferCastLike;
  cast_like.normalize = NormalizeCastLike;
  return {cast, cast_like};
}

}  // namespace fusion::ops
