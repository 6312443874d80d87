// Shape, Size, ConstantOfShape, Range, EyeLike. Import replaces Shape and Size by constants or extents. The others stay
// nodes whose bodies need no input (small ones fold).
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/onnx_dtype.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

std::pair<int64_t, int64_t> ShapeRange(const OpContext& context) {
  const int64_t rank = context.Rank(0);
  const auto counted = [rank](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  const int64_t start = counted(context.attrs.Int("start", 0));
  return {start, std::max(start, counted(context.attrs.Int("end", rank)))};
}

Shape ShapeSlice(const OpContext& context) {
  const auto [start, end] = ShapeRange(context);
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

// The extents become a constant where all are static.
absl::Status DynamicShape(ImportContext& import) {
  if (import.input(0) == nullptr) return absl::OkStatus();  // CheckSchema refuses it
  const ecg::ValueId x = import.node().inputs[0];
  const OpContext context(import.node().op, import.node().name, import.node().attrs, {import.input(0)});
  if (!import.IsDynamic(x)) {
    import.ReplaceWith({import.AddConstant(IntsTensor(ShapeSlice(context)))});
    return absl::OkStatus();
  }
  const auto [start, end] = ShapeRange(context);
  std::vector<ecg::ValueId> extents;
  for (int64_t d = start; d < end; ++d) extents.push_back(import.Extent(x, static_cast<int>(d)));
  ASSIGN_OR_RETURN(const ecg::ValueId shape, Stack(import, extents));
  import.ReplaceWith({shape});
  return absl::OkStatus();
}

absl::StatusOr<Types> InferSize(const OpContext&, int) { return Types{{DType::kI64, {}}}; }

absl::Status LowerSize(LowerContext& context) {
  DefineMap(context, 0, [&](const Idx&) { return te::ImmInt(DType::kI64, NumElements(context.ShapeOf(0))); });
  return absl::OkStatus();
}

absl::Status DynamicSize(ImportContext& import) {
  if (import.input(0) == nullptr) return absl::OkStatus();
  const ecg::ValueId x = import.node().inputs[0];
  ecg::ValueId size = IntScalar(import, 1);
  for (int d = 0; d < static_cast<int>(import.input(0)->type.shape.size()); ++d) {
    ASSIGN_OR_RETURN(size, ScalarOp(import, "Mul", size, import.Extent(x, d)));
  }
  import.ReplaceWith({size});
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

absl::Status DynamicConstantOfShape(ImportContext& import) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || context.Constant(0) != nullptr) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> extents, Elements(import, import.node().inputs[0]));
  std::vector<int64_t> bounds;
  for (size_t d = 0; d < extents.size(); ++d) {
    ASSIGN_OR_RETURN(const int64_t bound, UpperBound(import, context, extents[d], absl::StrCat("extent ", d)));
    bounds.push_back(bound);
  }
  ASSIGN_OR_RETURN(const auto filled,
                   import.AddBounded("ConstantOfShape", {import.AddConstant(IntsTensor(bounds))}, import.node().attrs));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(filled[0], extents));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

// start + delta·i; the number of elements is the greater of 0 and ceil((limit - start) / delta).
absl::Status DynamicRange(ImportContext& import) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  bool known = true;
  for (int k = 0; k < 3; ++k) {
    if (!context.Has(k)) return absl::OkStatus();
    known = known && context.Constant(k) != nullptr;
  }
  if (known) return absl::OkStatus();
  const DType dtype = context.Type(0).dtype;
  const auto scalar = [&](int k) -> absl::StatusOr<ecg::ValueId> {
    ASSIGN_OR_RETURN(const auto flat,
                     import.AddNode("Reshape", {import.node().inputs[k], import.AddConstant(IntsTensor({}))}, {}));
    return flat[0];
  };
  ASSIGN_OR_RETURN(const ecg::ValueId start, scalar(0));
  ASSIGN_OR_RETURN(const ecg::ValueId limit, scalar(1));
  ASSIGN_OR_RETURN(const ecg::ValueId delta, scalar(2));
  const auto cast = [&](ecg::ValueId x, int64_t onnx_type) {
    ecg::Attributes to;
    to.Set("to", onnx_type);
    return import.AddNode("Cast", {x}, to);
  };
  constexpr int64_t kOnnxInt64 = 7;
  ASSIGN_OR_RETURN(const ecg::ValueId span, ScalarOp(import, "Sub", limit, start));
  ecg::ValueId count = ecg::kNone;
  if (IsFloat(dtype)) {
    ASSIGN_OR_RETURN(const ecg::ValueId steps, ScalarOp(import, "Div", span, delta));
    ASSIGN_OR_RETURN(const auto whole, import.AddNode("Ceil", {steps}, {}));
    ASSIGN_OR_RETURN(const auto integer, cast(whole[0], kOnnxInt64));
    count = integer[0];
  } else {
    // Integers round up in integer arithmetic: (|span| + |delta| - 1) / |delta|, where span and delta have one sign.
    const std::optional<int64_t> step = KnownInt(import, delta);
    if (!step || *step == 0) return context.Unsupported("its delta is computed at run time; it must be a constant");
    ASSIGN_OR_RETURN(const auto wide, cast(span, kOnnxInt64));
    const ecg::ValueId one_less = IntScalar(import, *step > 0 ? *step - 1 : *step + 1);
    ASSIGN_OR_RETURN(const ecg::ValueId rounded, ScalarOp(import, "Add", wide[0], one_less));
    ASSIGN_OR_RETURN(const ecg::ValueId forward,
                     ScalarOp(import, "Mul", rounded, IntScalar(import, *step > 0 ? 1 : -1)));
    ASSIGN_OR_RETURN(const ecg::ValueId positive, ScalarOp(import, "Max", forward, IntScalar(import, 0)));
    ASSIGN_OR_RETURN(count, ScalarOp(import, "Div", positive, IntScalar(import, std::abs(*step))));
  }
  ASSIGN_OR_RETURN(count, ScalarOp(import, "Max", count, IntScalar(import, 0)));
  ASSIGN_OR_RETURN(const int64_t bound, UpperBound(import, context, count, "its length"));
  ASSIGN_OR_RETURN(const ecg::ValueId positions, Positions(import, {bound}, 0));
  ecg::Attributes none;
  const DType compute = ComputeType(dtype);  // the type that LowerRange computes in
  ASSIGN_OR_RETURN(const auto first, cast(start, OnnxNumber(compute)));
  ASSIGN_OR_RETURN(const auto apart, cast(delta, OnnxNumber(compute)));
  ASSIGN_OR_RETURN(const auto typed, cast(positions, OnnxNumber(compute)));
  ASSIGN_OR_RETURN(const auto steps, import.AddNode("Mul", {typed[0], apart[0]}, none));
  ASSIGN_OR_RETURN(const auto sums, import.AddNode("Add", {steps[0], first[0]}, none));
  ASSIGN_OR_RETURN(const auto values, cast(sums[0], OnnxNumber(dtype)));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(values[0], {count}));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

absl::StatusOr<Types> InferRange(const OpContext& context, int) {
  const char* const names[] = {"start", "limit", "delta"};
  const DType dtype = context.Type(0).dtype;
  constexpr int64_t kOnnxFloat = 1;
  if (ComputeType(dtype) != dtype && context.attrs.Int("stash_type", kOnnxFloat) != kOnnxFloat) {
    return context.Unsupported("stash_type is not 1 (float)");
  }
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
    // long double holds the difference of any two i64 exactly.
    count = static_cast<double>(std::ceil((static_cast<long double>(context.Constant(1)->GetInt(0)) -
                                           static_cast<long double>(context.Constant(0)->GetInt(0))) /
                                          static_cast<long double>(delta)));
  }
  if (!(count < static_cast<double>(int64_t{1} << 40))) return context.Error("has more than 2^40 elements");
  return Types{{dtype, {std::max<int64_t>(static_cast<int64_t>(std::max(count, 0.0)), 0)}}};
}

absl::Status LowerRange(LowerContext& context) {
  te::Builder& b = *context.builder;
  const DType dtype = context.output_types[0].dtype;
  // 16-bit types count in f32, as opset 27 requires: above 2048 (f16) or 256 (bf16) they lack some integers.
  const auto scalar = [&](int k) { return LoadCompute(b, context.in[k], Idx(context.Rank(k), te::Index(0))); };
  DefineMap(context, 0, [&](const Idx& i) {
    return te::Cast(dtype, scalar(0) + te::Cast(ComputeType(dtype), te::FromIndex(i[0])) * scalar(2));
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
  shape.dynamic = DynamicShape;

  OpDef size;
  size.name = "Size";
  size.infer = InferSize;
  size.lower = LowerSize;
  size.dynamic = DynamicSize;

  OpDef constant;
  constant.name = "ConstantOfShape";
  constant.roles = {InputRole::kExtents};
  constant.attrs = {{"value", AttrKind::kTensor}};
  constant.infer = InferConstantOfShape;
  constant.lower = LowerConstantOfShape;
  constant.dynamic = DynamicConstantOfShape;

  OpDef range;
  range.name = "Range";
  range.min_inputs = range.max_inputs = 3;
  range.roles = {InputRole::kScalar, InputRole::kScalar, InputRole::kScalar};
  range.attrs = {{"stash_type", AttrKind::kInt}};
  range.infer = InferRange;
  range.lower = LowerRange;
  range.dynamic = DynamicRange;

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
