// NonZero, Compress and NonMaxSuppression return results whose length depends on data. The nodes are routines with a
// bounded result and a count; `dynamic` makes the count the extent of the result.
#include <algorithm>
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

// (x) -> (coordinates [rank, elements], count)
absl::StatusOr<Types> InferNonZero(const OpContext& context, int) {
  RETURN_IF_ERROR(RefuseNarrowElements(context));
  const Shape& shape = context.ShapeOf(0);
  return Types{{DType::kI64, {context.Rank(0), NumElements(shape)}}, {DType::kI64, {}}};
}

absl::Status LowerNonZero(LowerContext& context) {
  const Shape& shape = context.ShapeOf(0);
  te::Routine routine{"non_zero", {context.in[0]}, {NumElements(shape), context.Rank(0)}};
  routine.params.insert(routine.params.end(), shape.begin(), shape.end());
  context.out = context.builder->Call(std::move(routine),
                                      {{DType::kI64, {context.Rank(0), NumElements(shape)}}, {DType::kI64, {}}});
  context.out.resize(context.output_types.size());
  return absl::OkStatus();
}

absl::Status DynamicNonZero(ImportContext& import) {
  ecg::ValueId x = import.node().inputs.empty() ? ecg::kNone : import.node().inputs[0];
  if (x == ecg::kNone) return absl::OkStatus();  // CheckSchema refuses it
  ASSIGN_OR_RETURN(x, Masked(import, x, Tensor(import.value(x).type.dtype, {})));
  ASSIGN_OR_RETURN(const auto found, import.AddBounded("NonZero", {x}, {}, 2));
  ASSIGN_OR_RETURN(const ecg::ValueId indices, import.WithExtents(found[0], {ecg::kNone, found[1]}));
  import.ReplaceWith({indices});
  return absl::OkStatus();
}

// (x, condition [m]) -> (slices of x, count)
absl::StatusOr<Types> InferCompress(const OpContext& context, int) {
  RETURN_IF_ERROR(RefuseNarrowElements(context));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  if (context.Rank(1) != 1 || context.Type(1).dtype != DType::kBool) return context.Error("condition must be bool [m]");
  Shape out = context.ShapeOf(0);
  out[axis] = std::min(out[axis], context.ShapeOf(1)[0]);
  return Types{{context.Type(0).dtype, out}, {DType::kI64, {}}};
}

absl::Status LowerCompress(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const AxisView view = ViewAlong(context.ShapeOf(0), axis);
  te::Routine routine{
      "compress", {context.in[0], context.in[1]}, {view.outer, view.extent, view.inner, context.ShapeOf(1)[0]}};
  context.out = context.builder->Call(std::move(routine),
                                      {{context.Type(0).dtype, context.output_types[0].shape}, {DType::kI64, {}}});
  context.out.resize(context.output_types.size());
  return absl::OkStatus();
}

absl::Status DynamicCompress(ImportContext& import) {
  const ecg::Node node = import.node();
  if (node.inputs.size() != 2 || node.inputs[0] == ecg::kNone || node.inputs[1] == ecg::kNone) return absl::OkStatus();
  ecg::ValueId x = node.inputs[0], condition = node.inputs[1];
  int64_t axis = node.attrs.Int("axis");
  if (!node.attrs.Has("axis")) {
    ASSIGN_OR_RETURN(const auto flat, import.AddNode("Reshape", {x, import.AddConstant(IntsTensor({-1}))}, {}));
    x = flat[0];
  }
  const int64_t rank = static_cast<int64_t>(import.value(x).type.shape.size());
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  ASSIGN_OR_RETURN(const int at, NormalizeAxis(context, axis, static_cast<int>(rank)));
  const Tensor no(DType::kBool, {});
  if (context.Rank(1) == 1) {
    ASSIGN_OR_RETURN(condition, Masked(import, condition, no));
    if (import.IsDynamic(x, at)) {
      ASSIGN_OR_RETURN(condition, MaskedAt(import, condition, 0, import.Extent(x, at), no));
    }
  }
  ecg::Attributes attrs;
  attrs.Set("axis", int64_t{at});
  ASSIGN_OR_RETURN(const auto found, import.AddBounded("Compress", {x, condition}, attrs, 2));
  std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
  extents[at] = found[1];
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(found[0], std::move(extents)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

// (boxes [B, N, 4], scores [B, C, N], max_output_boxes_per_class, iou_threshold, score_threshold, number of valid
// boxes) -> (selected [B·C·limit, 3], count)
absl::StatusOr<Types> InferNms(const OpContext& context, int) {
  const Shape& boxes = context.ShapeOf(0);
  const Shape& scores = context.ShapeOf(1);
  const bool fit = boxes.size() == 3 && scores.size() == 3 && boxes[2] == 4 && boxes[0] == scores[0] &&
                   boxes[1] == scores[2] && context.Type(0).dtype == DType::kF32 &&
                   context.Type(1).dtype == DType::kF32;
  if (!fit) {
    return context.Error(absl::StrCat("boxes ", ShapeToString(boxes), " and scores ", ShapeToString(scores),
                                      " must be f32 [B, N, 4] and [B, C, N]"));
  }
  const DType types[] = {DType::kI64, DType::kF32, DType::kF32, DType::kI64};
  for (int i = 2; i < 6; ++i) {
    if (NumElements(context.ShapeOf(i)) != 1 || context.Type(i).dtype != types[i - 2]) {
      return context.Error(absl::StrCat("input ", i, " must be one ", DTypeName(types[i - 2])));
    }
  }
  const int64_t limit = std::clamp<int64_t>(context.attrs.Int("limit"), 0, boxes[1]);
  return Types{{DType::kI64, {scores[0] * scores[1] * limit, 3}}, {DType::kI64, {}}};
}

absl::Status LowerNms(LowerContext& context) {
  const Shape& scores = context.ShapeOf(1);
  const int64_t limit = std::clamp<int64_t>(context.attrs.Int("limit"), 0, scores[2]);
  te::Routine routine{"non_max_suppression",
                      context.in,
                      {scores[0], scores[1], scores[2], limit, context.attrs.Int("center_point_box") != 0,
                       context.attrs.Int("scored") != 0}};
  routine.scratch_bytes =
      40 * scores[2] + te::KeysBytes(DType::kF32, scores[2]) + te::KeyedBytes(DType::kF32, scores[2]);
  context.out =
      context.builder->Call(std::move(routine), {{DType::kI64, {scores[0] * scores[1] * limit, 3}}, {DType::kI64, {}}});
  context.out.resize(context.output_types.size());
  return absl::OkStatus();
}

absl::Status DynamicNms(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || node.inputs.size() > 5) {
    return context.Error("needs boxes, scores, and at most three limits");
  }
  if (context.Rank(0) != 3 || context.Rank(1) != 3) return context.Error("boxes and scores must have rank 3");
  for (int d = 0; d < 3; ++d) {
    if ((d != 1 && import.IsDynamic(node.inputs[0], d)) || (d != 2 && import.IsDynamic(node.inputs[1], d))) {
      return context.Unsupported("the number of batches or classes depends on data");
    }
  }
  const auto scalar = [&](int i, float otherwise) {
    return context.Has(i) ? node.inputs[i] : import.AddConstant(Tensor::From<double>(DType::kF32, {}, {otherwise}));
  };
  const ecg::ValueId most = context.Has(2) ? node.inputs[2] : IntScalar(import, 0);
  const auto range = import.Ranges(most);
  ecg::Attributes attrs = node.attrs;
  const int64_t boxes = import.value(node.inputs[0]).type.shape[1];
  attrs.Set("limit", range && range->size() == 1 ? std::clamp<int64_t>(range->front().hi, 0, boxes) : boxes);
  attrs.Set("scored", int64_t{context.Has(4)});
  const ecg::ValueId valid =
      import.IsDynamic(node.inputs[1], 2) ? import.Extent(node.inputs[1], 2) : import.Extent(node.inputs[0], 1);
  const std::vector<ecg::ValueId> inputs = {node.inputs[0], node.inputs[1], most, scalar(3, 0), scalar(4, 0), valid};
  ASSIGN_OR_RETURN(const auto found, import.AddBounded(node.op, inputs, attrs, 2));
  ASSIGN_OR_RETURN(const ecg::ValueId selected, import.WithExtents(found[0], {found[1], ecg::kNone}));
  import.ReplaceWith({selected});
  return absl::OkStatus();
}

}  // namespace

std::vector<OpDef> SelectionOps() {
  OpDef non_zero;
  non_zero.name = "NonZero";
  non_zero.infer = InferNonZero;
  non_zero.lower = LowerNonZero;
  non_zero.dynamic = DynamicNonZero;

  OpDef compress;
  compress.name = "Compress";
  compress.min_inputs = compress.max_inputs = 2;
  compress.attrs = {{"axis", AttrKind::kInt}};
  compress.infer = InferCompress;
  compress.lower = LowerCompress;
  compress.dynamic = DynamicCompress;

  OpDef nms;
  nms.name = "NonMaxSuppression";
  nms.min_inputs = nms.max_inputs = 6;
  nms.attrs = {{"center_point_box", AttrKind::kInt}, {"limit", AttrKind::kInt}, {"scored", AttrKind::kInt}};
  nms.infer = InferNms;
  nms.lower = LowerNms;
  nms.dynamic = DynamicNms;

  std::vector<OpDef> defs = {non_zero, compress, nms};
  for (OpDef& def : defs) {
    def.num_outputs = 2;
    def.mapping = Always(MappingType::kManyToMany);
    def.flops = NoFlops;
  }
  return defs;
}

}  // namespace fusion::ops
