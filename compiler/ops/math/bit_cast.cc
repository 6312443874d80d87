// BitCast reinterprets the bits as a type of the same width.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/narrow_types.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> InferBitCast(const OpContext& context, int) {
  RETURN_IF_ERROR(RefuseNarrowElements(context));
  const int64_t to = context.attrs.Int("to");
  const std::optional<DType> dtype = DTypeFromOnnx(to);
  if (!dtype) return context.Unsupported(absl::StrCat("element type ", to, " (to) is not supported"));
  const DType from = context.Type(0).dtype;
  if (DTypeBytes(from) != DTypeBytes(*dtype)) {
    return context.Error(
        absl::StrCat(DTypeName(from), " and ", DTypeName(*dtype), " differ in width, so that no bits correspond"));
  }
  return Types{{*dtype, context.ShapeOf(0)}};
}

// A BitCast is an expression if input and output are integers (or bool): a cast between integers of one width keeps the
// bits, and any byte that is not 0 is true. Expressions compute with numbers, and a NaN has many bit patterns, so only
// a routine keeps the bits of floats.
bool IsExpression(const OpContext& context) {
  const std::optional<DType> to = DTypeFromOnnx(context.attrs.Int("to"));
  return !to || *to == context.Type(0).dtype || (!IsFloat(*to) && !IsFloat(context.Type(0).dtype));
}

absl::Status LowerBitCast(LowerContext& context) {
  const ecg::ValueType& type = context.output_types[0];
  const int64_t elements = NumElements(type.shape);
  if (elements == 0 || IsExpression(context)) {
    DefineMap(context, 0,
              [&](const te::Builder::Idx& i) { return te::Cast(type.dtype, context.builder->At(context.in[0], i)); });
    return absl::OkStatus();
  }
  constexpr int64_t kBlock = 1 << 14;
  te::Routine routine{"bit_cast", {context.in[0]}, {elements, kBlock}};
  routine.tasks = (elements + kBlock - 1) / kBlock;
  context.out = context.builder->Call(std::move(routine), {{type.dtype, type.shape}});
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> BitCastOps() {
  OpDef def;
  def.name = "BitCast";
  def.attrs = {{"to", AttrKind::kInt, true}};
  def.mapping = [](const OpContext& context, int) {
    return IsExpression(context) ? MappingType::kOneToOne : MappingType::kManyToMany;
  };
  def.flops = NoFlops;
  def.infer = InferBitCast;
  def.lower = LowerBitCast;
  return {def};
}

}  // namespace fusion::ops
