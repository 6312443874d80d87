// Cast and CastLike.
#include "absl/strings/str_cat.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/onnx_dtype.h"
#include "compiler/ops/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> InferCast(const OpContext& context, int) {
  const int64_t to = context.attrs.Int("to");
  const std::optional<DType> dtype = DTypeFromOnnx(to);
  if (!dtype) return context.Unsupported(absl::StrCat("element type ", to, " (to) is not supported"));
  return Types{{*dtype, context.ShapeOf(0)}};
}

absl::StatusOr<Types> InferCastLike(const OpContext& context, int) {
  return Types{{context.Type(1).dtype, context.ShapeOf(0)}};
}

absl::Status LowerCast(LowerContext& context) {
  te::Builder& b = *context.builder;
  const ecg::ValueType& type = context.output_types[0];
  context.out[0] = b.Map("Cast", type.dtype, type.shape,
                         [&](const te::Builder::Idx& i) { return te::Cast(type.dtype, b.At(context.in[0], i)); });
  return absl::OkStatus();
}

OpDef Define(const char* name) {
  OpDef def;
  def.name = name;
  def.mapping = Always(MappingType::kOneToOne);
  def.flops = [](const OpContext&, const Types& outputs) -> double { return NumElements(outputs[0].shape); };
  def.lower = LowerCast;
  return def;
}

}  // namespace

std::vector<OpDef> CastOps() {
  OpDef cast = Define("Cast");
  cast.attrs = {{"to", AttrKind::kInt, true}, {"saturate", AttrKind::kInt}};
  cast.infer = InferCast;
  OpDef cast_like = Define("CastLike");
  cast_like.min_inputs = cast_like.max_inputs = 2;
  cast_like.attrs = {{"saturate", AttrKind::kInt}};
  cast_like.infer = InferCastLike;
  return {cast, cast_like};
}

}  // namespace fusion::ops
