// TopK and Unique sort, which no tensor expression can express. They are routines over [outer, axis, inner].
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "compiler/ops/shared/narrow_types.h"
#include "compiler/te/routines/routine.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

absl::StatusOr<Types> InferTopK(const OpContext& context, int) {
  RETURN_IF_ERROR(RefuseNarrowElements(context));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  ASSIGN_OR_RETURN(const std::vector<int64_t> k, context.ConstantInts(1, "K"));
  Shape out = context.ShapeOf(0);
  if (k.size() != 1 || k[0] < 0 || k[0] > out[axis]) {
    return context.Error(
        absl::StrCat("K ", ShapeToString(k), " does not lie between 0 and ", out[axis], ", the extent of axis ", axis));
  }
  out[axis] = k[0];
  return Types{{context.Type(0).dtype, out}, {DType::kI64, out}};
}

absl::Status LowerTopK(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  const AxisView view = ViewAlong(context.ShapeOf(0), axis);
  ASSIGN_OR_RETURN(const std::vector<int64_t> k, context.ConstantInts(1, "K"));
  const int64_t largest = context.attrs.Int("largest", 1) != 0;
  te::Routine routine{"top_k", {context.in[0]}, {view.extent, view.inner, k[0], largest}};
  routine.tasks = view.outer * view.inner;
  const DType dtype = context.Type(0).dtype;
  routine.scratch_bytes = te::KeysBytes(dtype, view.extent) + te::KeyedBytes(dtype, view.extent);
  std::vector<te::TensorId> out = context.builder->Call(
      std::move(routine),
      {{context.Type(0).dtype, context.output_types[0].shape}, {DType::kI64, context.output_types[0].shape}});
  out.resize(context.output_types.size());
  context.out = out;
  return absl::OkStatus();
}

// Up to opset 9 k is an attribute.
absl::Status NormalizeTopK(ImportContext& import) {
  ecg::Node& node = import.node();
  if (node.attrs.Has("k") && node.inputs.size() == 1) {
    node.inputs.push_back(import.AddConstant(IntsTensor({node.attrs.Int("k")})));
    node.attrs.Erase("k");
  }
  return absl::OkStatus();
}

// Returns the value that TopK orders last among all values of the type.
Tensor Worst(DType dtype, bool largest) {
  Tensor worst(dtype, {});
  if (IsFloat(dtype)) {
    worst.SetDouble(0, largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN());
  } else if (dtype == DType::kBool) {
    worst.SetInt(0, largest ? 0 : 1);
  } else {
    const int64_t top =
        int64_t{1} << (8 * DTypeBytes(dtype) - 2);  // half of the signed range, which i64 can hold twice
    const int64_t most = top - 1 + top;
    worst.SetInt(0, IsSigned(dtype) ? (largest ? -most - 1 : most) : (largest ? 0 : -1));
  }
  return worst;
}

// Handles a K that is computed at run time and an axis whose extent depends on data.
absl::Status DynamicTopK(ImportContext& import) {
  ecg::Node& node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1)) return absl::OkStatus();  // CheckSchema refuses it
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0)));
  if (context.Constant(1) != nullptr && !import.IsDynamic(node.inputs[0])) return absl::OkStatus();
  const ecg::ValueId x = node.inputs[0];
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> k, Elements(import, node.inputs[1]));
  if (k.size() != 1) return context.Error("K must hold one value");
  int64_t bound = context.ShapeOf(0)[axis];
  if (const auto range = import.Ranges(k[0])) bound = std::min(bound, std::max<int64_t>(0, range->front().hi));
  ecg::ValueId filled = x;
  if (import.IsDynamic(x, axis)) {
    const Tensor worst = Worst(context.Type(0).dtype, context.attrs.Int("largest", 1) != 0);
    ASSIGN_OR_RETURN(filled, MaskedAt(import, x, axis, import.Extent(x, axis), worst));
  }
  std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
  extents[axis] = k[0];
  const ecg::ValueId most = import.AddConstant(IntsTensor({bound}));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueId> outputs, import.AddBounded("TopK", {filled, most}, node.attrs, 2));
  for (ecg::ValueId& output : outputs) {
    ASSIGN_OR_RETURN(output, import.WithExtents(output, extents));
  }
  import.ReplaceWith(std::move(outputs));
  return absl::OkStatus();
}

// (x, number of valid slices) -> (distinct slices, index of the first occurrence of each, for each slice of x the index
// of its distinct slice, number of occurrences of each, number of distinct slices)
absl::StatusOr<Types> InferUnique(const OpContext& context, int) {
  RETURN_IF_ERROR(RefuseNarrowElements(context));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  if (context.Type(1).dtype != DType::kI64 || NumElements(context.ShapeOf(1)) != 1) {
    return context.Error("the number of slices must be one i64");
  }
  const ecg::ValueType list{DType::kI64, {context.ShapeOf(0)[axis]}};
  return Types{context.Type(0), list, list, list, {DType::kI64, {}}};
}

absl::Status LowerUnique(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const AxisView view = ViewAlong(context.ShapeOf(0), axis);
  te::Routine routine{"unique",
                      {context.in[0], context.in[1]},
                      {view.outer, view.extent, view.inner, context.attrs.Int("sorted", 1) != 0}};
  routine.scratch_bytes = 24 * view.extent + te::KeyedBytes(context.Type(0).dtype, view.extent);
  const std::pair<DType, Shape> list{DType::kI64, {view.extent}};
  context.out = context.builder->Call(
      std::move(routine), {{context.Type(0).dtype, context.ShapeOf(0)}, list, list, list, {DType::kI64, {}}});
  context.out.resize(context.output_types.size());
  return absl::OkStatus();
}

// Without an axis the elements of the flattened x are the slices.
absl::Status DynamicUnique(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || node.inputs.size() != 1) return context.Error("needs one input");
  ecg::ValueId x = node.inputs[0];
  if (!node.attrs.Has("axis")) {
    ASSIGN_OR_RETURN(const auto flat, import.AddNode("Reshape", {x, import.AddConstant(IntsTensor({-1}))}, {}));
    x = flat[0];
  }
  std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, node.attrs.Int("axis"), static_cast<int>(extents.size())));
  for (int d = 0; d < static_cast<int>(extents.size()); ++d) {
    if (d != axis && extents[d] != ecg::kNone) {
      return context.Unsupported(absl::StrCat("dimension ", d, " of the compared slices depends on data"));
    }
  }
  ecg::Attributes attrs;
  attrs.Set("axis", int64_t{axis});
  attrs.Set("sorted", node.attrs.Int("sorted", 1));
  const ecg::ValueId valid = import.Extent(x, axis), given = extents[axis];
  ASSIGN_OR_RETURN(std::vector<ecg::ValueId> outputs, import.AddBounded("Unique", {x, valid}, attrs, 5));
  const ecg::ValueId count = outputs[4];
  outputs.pop_back();
  extents[axis] = count;
  ASSIGN_OR_RETURN(outputs[0], import.WithExtents(outputs[0], extents));
  ASSIGN_OR_RETURN(outputs[1], import.WithExtents(outputs[1], {count}));
  ASSIGN_OR_RETURN(outputs[2], import.WithExtents(outputs[2], {given}));
  ASSIGN_OR_RETURN(outputs[3], import.WithExtents(outputs[3], {count}));
  import.ReplaceWith(std::move(outputs));
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> OrderingOps() {
  OpDef top_k;
  top_k.name = "TopK";
  top_k.min_inputs = top_k.max_inputs = 2;
  top_k.num_outputs = 2;
  top_k.attrs = {{"axis", AttrKind::kInt}, {"largest", AttrKind::kInt}, {"sorted", AttrKind::kInt}};
  top_k.infer = InferTopK;
  top_k.lower = LowerTopK;
  top_k.normalize = NormalizeTopK;
  top_k.dynamic = DynamicTopK;

  OpDef unique;
  unique.name = "Unique";
  unique.min_inputs = unique.max_inputs = 2;
  unique.num_outputs = 5;
  unique.attrs = {{"axis", AttrKind::kInt}, {"sorted", AttrKind::kInt}};
  unique.infer = InferUnique;
  unique.lower = LowerUnique;
  unique.dynamic = DynamicUnique;

  std::vector<OpDef> defs = {top_k, unique};
  for (OpDef& def : defs) {
    def.mapping = Always(MappingType::kManyToMany);
    def.flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
