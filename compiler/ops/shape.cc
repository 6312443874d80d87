// Shape, Size, ConstantOfShape, Range, EyeLike. Shapes are static, so that Shape and Size are constants on import; the
// others stay nodes whose bodies need no input (small ones fold).
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/def_parts.h"
#include "compiler/ops/elementwise.h"
#include "compiler/ops/onnx_dtype.h"
#include "compiler/ops/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

Shape ShapeSlice(const OpContext& context) {
  const int64_t rank = context.Rank(0);
  const auto counted = [rank](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = counted(context.attrs.Int("start", 0));
  const int64_t end = std::max(start, counted(context.attrs.Int("end", rank)));
  return {context.ShapeOf(0).begin() + start, context.ShapeOf(0).begin() + end};
}

absl::StatusOr<Types> InferShape(const OpContext& context, int) {
  return Types{{DType::kI64, {static_cast<int64_t>(ShapeSlice(context).size())}}};
}

absl::Status LowerShape(LowerContext& context) {
  const te::TensorId table = context.builder->Constant("shape", IntsTensor(ShapeSlice(context)));
  DefineMap(context, 0, [&](const Idx& i) { return context.builder->At(table, i); });
  return absl::OkStatus();
}

absl::Status NormalizeShape(ImportContext& import) {
  if (import.input(0) == nullptr) return absl::OkStatus();
  const OpContext context(import.node().op, import.node().name, import.node().attrs, {import.input(0)});
  import.ReplaceWith({import.AddConstant(IntsTensor(ShapeSlice(context)))});
  return absl::OkStatus();
}

absl::StatusOr<Types> InferSize(const OpContext&, int) { return Types{{DType::kI64, {}}}; }

absl::Status LowerSize(LowerContext& context) {
  DefineMap(context, 0, [&](const Idx&) { return te::ImmInt(DType::kI64, NumElements(context.ShapeOf(0))); });
  return absl::OkStatus();
}

absl::Status NormalizeSize(ImportContext& import) {
  if (import.input(0) == nullptr) return absl::OkStatus();
  const int64_t elements = NumElements(import.input(0)->type.shape);
  import.ReplaceWith({import.AddConstant(Tensor::From<int64_t>(DType::kI64, {}, {elements}))});
  return absl::OkStatus();
}

absl::StatusOr<Types> InferConstantOfShape(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const Shape shape, context.ConstantInts(0, "input"));
  for (int64_t extent : shape) {
    if (extent < 0) return context.Error(absl::StrCat("shape ", ShapeToString(shape), " has a negative extent"));
  }
  const Tensor* value = context.attrs.GetTensor("value");
  if (value != nullptr && value->num_elements() != 1) return context.Error("attribute 'value' must hold one element");
  return Types{{value == nullptr ? DType::kF32 : value->dtype(), shape}};
}

absl::Status LowerConstantOfShape(LowerContext& context) {
  const Tensor* value = context.attrs.GetTensor("value");
  const DType dtype = context.output_types[0].dtype;
  DefineMap(context, 0, [&](const Idx&) {
    if (value == nullptr) return te::Imm(dtype, 0);
    return IsFloat(dtype) ? te::Imm(dtype, value->GetDouble(0)) : te::ImmInt(dtype, value->GetInt(0));
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRange(const OpContext& context, int) {
  const char* const names[] = {"start", "limit", "delta"};
  const DType dtype = context.Type(0).dtype;
  for (int k = 0; k < 3; ++k) {
    const Tensor* value = context.Constant(k);
    if (value == nullptr) {
      return context.Unsupported(absl::StrCat("input '", names[k], "' is computed at run time; it must be a constant"));
    }
    if (value->num_elements() != 1) return context.Error(absl::StrCat("input '", names[k], "' must hold one value"));
    if (value->dtype() != dtype) return context.Error("start, limit and delta differ in type");
  }
  double count = 0;
  if (IsFloat(dtype)) {
    const double delta = context.Constant(2)->GetDouble(0);
    if (delta == 0) return context.Error("delta is 0");
    count = std::ceil((context.Constant(1)->GetDouble(0) - context.Constant(0)->GetDouble(0)) / delta);
  } else {
    const int64_t delta = context.Constant(2)->GetInt(0);
    if (delta == 0) return context.Error("delta is 0");
    // In long double, where the difference of any two i64 is exact.
    count = static_cast<double>(std::ceil((static_cast<long double>(context.Constant(1)->GetInt(0)) -
                                           static_cast<long double>(context.Constant(0)->GetInt(0))) /
                                          static_cast<long double>(delta)));
  }
  if (!(count < static_cast<double>(int64_t{1} << 40))) return context.Error("has more than 2^40 elements");
  return Types{{dtype, {std::max<int64_t>(static_cast<int64_t>(std::max(count, 0.0)), 0)}}};
}

absl::Status LowerRange(LowerContext& context) {
  te::Builder& b = *context.builder;
  const auto scalar = [&](int k) { return b.At(context.in[k], Idx(context.Rank(k), te::Index(0))); };
  DefineMap(context, 0, [&](const Idx& i) {
    return scalar(0) + te::Cast(context.output_types[0].dtype, te::FromIndex(i[0])) * scalar(2);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferEyeLike(const OpContext& context, int) {
  if (context.Rank(0) != 2)
    return context.Error(absl::StrCat("input ", ShapeToString(context.ShapeOf(0)), " is no matrix"));
  DType dtype = context.Type(0).dtype;
  if (context.attrs.Has("dtype")) {
    const auto named = DTypeFromOnnx(context.attrs.Int("dtype"));
    if (!named.has_value()) return context.Unsupported("the element type that 'dtype' names is not supported");
    dtype = *named;
  }
  return Types{{dtype, context.ShapeOf(0)}};
}

absl::Status LowerEyeLike(LowerContext& context) {
  const DType dtype = context.output_types[0].dtype;
  constexpr int64_t kFar = int64_t{1} << 41;
  const int64_t k = std::clamp<int64_t>(context.attrs.Int("k"), -kFar, kFar);
  DefineMap(context, 0, [&](const Idx& i) {
    return te::If({{i[1] - i[0], te::Cmp::kEq, te::Index(k)}}, te::Imm(dtype, 1), te::Imm(dtype, 0));
  });
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> ShapeOps() {
  OpDef shape;
  shape.name = "Shape";
  shape.attrs = {{"start", AttrKind::kInt}, {"end", AttrKind::kInt}};
  shape.infer = InferShape;
  shape.lower = LowerShape;
  shape.normalize = NormalizeShape;

  OpDef size;
  size.name = "Size";
  size.infer = InferSize;
  size.lower = LowerSize;
  size.normalize = NormalizeSize;

  OpDef constant;
  constant.name = "ConstantOfShape";
  constant.attrs = {{"value", AttrKind::kTensor}};
  constant.infer = InferConstantOfShape;
  constant.lower = LowerConstantOfShape;

  OpDef range;
  range.name = "Range";
  range.min_inputs = range.max_inputs = 3;
  range.infer = InferRange;
  range.lower = LowerRange;

  OpDef eye;
  eye.name = "EyeLike";
  eye.attrs = {{"dtype", AttrKind::kInt}, {"k", AttrKind::kInt}};
  eye.infer = InferEyeLike;
  eye.lower = LowerEyeLike;

  std::vector<OpDef> defs = {shape, size, constant, range, eye};
  for (OpDef& def : defs) {
    def.mapping = Always(MappingType::kOneToMany);
    def.flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
