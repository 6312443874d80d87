// Gather, GatherElements, GatherND, OneHot: loads whose index comes from a tensor. Constant index tables that are
// arithmetic become plain indices, so that exported slicing by Gather fuses like Slice.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "compiler/ops/shared/index_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Idx = te::Builder::Idx;
using Types = std::vector<ecg::ValueType>;

// An empty source can only give an empty result. DefineMap then never calls its body.
absl::Status CheckSource(const OpContext& context, int64_t extent, const Shape& out) {
  if (extent > 0 || NumElements(out) == 0) return absl::OkStatus();
  return context.Error(absl::StrCat("gathers from an empty dimension of ", ShapeToString(context.ShapeOf(0))));
}

absl::StatusOr<Types> InferGather(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "indices"));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const Shape& data = context.ShapeOf(0);
  Shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), context.ShapeOf(1).begin(), context.ShapeOf(1).end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  RETURN_IF_ERROR(CheckSource(context, data[axis], out));
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerGather(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const int64_t extent = std::max<int64_t>(context.ShapeOf(0)[axis], 1);
  WrappedIndices indices(context, 1, extent);
  const int index_rank = context.Rank(1);
  DefineMap(context, 0, [&](const Idx& i) {
    Idx in(i.begin(), i.begin() + axis);
    in.push_back(indices(Idx(i.begin() + axis, i.begin() + axis + index_rank)));
    in.insert(in.end(), i.begin() + axis + index_rank, i.end());
    return context.builder->At(context.in[0], in);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferGatherElements(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "indices"));
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  bool fits = indices.size() == data.size();
  for (size_t d = 0; fits && d < data.size(); ++d) fits = static_cast<int64_t>(d) == axis || indices[d] <= data[d];
  if (!fits) {
    return context.Error(
        absl::StrCat("indices ", ShapeToString(indices), " do not lie inside data ", ShapeToString(data)));
  }
  RETURN_IF_ERROR(CheckSource(context, data[axis], indices));
  return Types{{context.Type(0).dtype, indices}};
}

absl::Status LowerGatherElements(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  WrappedIndices indices(context, 1, std::max<int64_t>(context.ShapeOf(0)[axis], 1));
  DefineMap(context, 0, [&](const Idx& i) {
    Idx in = i;
    in[axis] = indices(i);
    return context.builder->At(context.in[0], in);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferGatherND(const OpContext& context, int) {
  RETURN_IF_ERROR(ExpectInteger(context, 1, "indices"));
  const int64_t batch = context.attrs.Int("batch_dims");
  const Shape& data = context.ShapeOf(0);
  const Shape& indices = context.ShapeOf(1);
  const auto mismatch = [&] {
    return context.Error(absl::StrCat("indices ", ShapeToString(indices), " do not address data ", ShapeToString(data),
                                      " with batch_dims=", batch));
  };
  if (indices.empty() || batch < 0 || batch >= static_cast<int64_t>(std::min(data.size(), indices.size())))
    return mismatch();
  const int64_t depth = indices.back();
  if (depth < 0 || batch + depth > static_cast<int64_t>(data.size())) return mismatch();
  for (int64_t d = 0; d < batch; ++d) {
    if (indices[d] != data[d]) return mismatch();
  }
  Shape out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + batch + depth, data.end());
  for (int64_t k = 0; k < depth; ++k) RETURN_IF_ERROR(CheckSource(context, data[batch + k], out));
  return Types{{context.Type(0).dtype, out}};
}

absl::Status LowerGatherND(LowerContext& context) {
  const int64_t batch = context.attrs.Int("batch_dims");
  const Shape& data = context.ShapeOf(0);
  const int64_t depth = context.ShapeOf(1).back();
  const int64_t tuple_rank = context.Rank(1) - 1;
  te::Builder& b = *context.builder;
  // indices[..., k] counts in dimension batch + k. One wrapped tensor per component keeps the value range of each.
  std::vector<te::TensorId> components;
  const Shape tuples(context.ShapeOf(1).begin(), context.ShapeOf(1).end() - 1);
  for (int64_t k = 0; k < depth; ++k) {
    const int64_t extent = std::max<int64_t>(data[batch + k], 1);
    components.push_back(b.Map("indices", DType::kI64, tuples, [&](Idx i) {
      i.push_back(Index(k));
      const Scalar counted = CountedIndex(b.At(context.in[1], i), extent);
      return te::Max(te::Min(counted, te::ImmInt(DType::kI64, extent - 1)), te::ImmInt(DType::kI64, 0));
    }));
  }
  DefineMap(context, 0, [&](const Idx& i) {
    Idx in(i.begin(), i.begin() + batch);
    const Idx tuple(i.begin(), i.begin() + tuple_rank);
    for (int64_t k = 0; k < depth; ++k) {
      in.push_back(Index::Load(components[k], tuple, {0, data[batch + k] - 1}));
    }
    in.insert(in.end(), i.begin() + tuple_rank, i.end());
    return b.At(context.in[0], in);
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferOneHot(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0) + 1));
  const Tensor* depth = context.Constant(1);
  if (depth == nullptr) return context.Unsupported("input 'depth' is computed at run time; it must be a constant");
  if (depth->num_elements() != 1) return context.Error("input 'depth' must hold one value");
  if (context.ShapeOf(2) != Shape{2}) return context.Error("input 'values' must be [off_value, on_value]");
  const int64_t classes = IsFloat(depth->dtype()) ? static_cast<int64_t>(depth->GetDouble(0)) : depth->GetInt(0);
  if (classes < 0) return context.Error(absl::StrCat("depth ", classes, " is negative"));
  Shape out = context.ShapeOf(0);
  out.insert(out.begin() + axis, classes);
  return Types{{context.Type(2).dtype, out}};
}

absl::Status LowerOneHot(LowerContext& context) {
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis", -1), context.Rank(0) + 1));
  const int64_t depth = context.output_types[0].shape[axis];
  te::Builder& b = *context.builder;
  DefineMap(context, 0, [&](const Idx& i) {
    Idx in = i;
    in.erase(in.begin() + axis);
    const Scalar counted = CountedIndex(b.At(context.in[0], in), depth);
    const Scalar on = te::Call(te::Op::kEq, {counted, te::FromIndex(i[axis])});
    return te::Select(on, b.At(context.in[2], {Index(1)}), b.At(context.in[2], {Index(0)}));
  });
  return absl::OkStatus();
}

// Resolves negative indices here, because they count from an extent that the lowering does not know as a constant.
absl::StatusOr<ecg::ValueId> CountedIndices(ImportContext& import, ecg::ValueId indices, ecg::ValueId extent) {
  if (import.value(indices).type.dtype != DType::kI64) {
    ecg::Attributes to;
    to.Set("to", int64_t{7});
    ASSIGN_OR_RETURN(const auto wide, import.AddNode("Cast", {indices}, to));
    indices = wide[0];
  }
  return CountedFromEnd(import, indices, extent);
}

absl::Status DynamicGather(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1)) return absl::OkStatus();  // CheckSchema refuses it
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  if (!import.IsDynamic(node.inputs[0], axis)) return absl::OkStatus();
  const ecg::ValueId extent = import.Extent(node.inputs[0], axis);
  ASSIGN_OR_RETURN(const ecg::ValueId indices, CountedIndices(import, node.inputs[1], extent));
  const std::vector<ecg::ValueId> data = ExtentsOf(import, node.inputs[0]);
  std::vector<ecg::ValueId> extents(data.begin(), data.begin() + axis);
  if (node.op == "Gather") {
    const std::vector<ecg::ValueId> own = ExtentsOf(import, indices);
    extents.insert(extents.end(), own.begin(), own.end());
    extents.insert(extents.end(), data.begin() + axis + 1, data.end());
  } else {  // one gather per element: the result is as large as the indices
    extents = ExtentsOf(import, indices);
  }
  ASSIGN_OR_RETURN(const auto gathered, import.AddBounded(node.op, {node.inputs[0], indices}, node.attrs));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(gathered[0], std::move(extents)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

absl::Status DynamicGatherND(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || context.Rank(1) == 0) return absl::OkStatus();
  RETURN_IF_ERROR(CheckTuples(import, context, node.inputs[1]));
  const int batch = static_cast<int>(context.attrs.Int("batch_dims"));
  const int depth = static_cast<int>(context.ShapeOf(1).back());
  if (batch < 0 || batch + depth > context.Rank(0)) return absl::OkStatus();
  bool dynamic = false;
  for (int k = 0; k < depth; ++k) dynamic = dynamic || import.IsDynamic(node.inputs[0], batch + k);
  if (!dynamic) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ecg::ValueId counts, CountedExtents(import, node.inputs[0], batch, depth));
  ASSIGN_OR_RETURN(const ecg::ValueId indices, CountedIndices(import, node.inputs[1], counts));
  const std::vector<ecg::ValueId> data = ExtentsOf(import, node.inputs[0]);
  std::vector<ecg::ValueId> extents = ExtentsOf(import, indices);
  extents.pop_back();
  extents.insert(extents.end(), data.begin() + batch + depth, data.end());
  ASSIGN_OR_RETURN(const auto gathered, import.AddBounded(node.op, {node.inputs[0], indices}, node.attrs));
  ASSIGN_OR_RETURN(const ecg::ValueId result, import.WithExtents(gathered[0], std::move(extents)));
  import.ReplaceWith({result});
  return absl::OkStatus();
}

// Refuses known indices that no element has. Where the node may not run they are nobody's error, and the lowering
// brings them into the extent, as it does with indices of the run.
absl::Status CheckIndices(ImportContext& import) {
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || import.MayNotRun()) return absl::OkStatus();
  const Tensor* indices = context.Constant(1);
  if (indices == nullptr || !IsInteger(indices->dtype())) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context, context.attrs.Int("axis"), context.Rank(0)));
  const int64_t extent = context.ShapeOf(0)[axis];
  for (int64_t k = 0; k < indices->num_elements() && extent > 0; ++k) {
    const int64_t given = indices->GetInt(k);
    if (given < -extent || given >= extent) {
      return context.Error(absl::StrCat("index ", given, " is outside a dimension of extent ", extent));
    }
  }
  return absl::OkStatus();
}

// Tuples of one component are indices: exporters write `w[picks]` so. Gather reads them as they are, without a copy of
// another shape.
absl::Status NormalizeGatherND(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0) || !context.Has(1) || context.attrs.Int("batch_dims") != 0) return absl::OkStatus();
  const bool pairs = context.Rank(1) == 0 || context.ShapeOf(1).back() != 1 || context.Rank(0) == 0;
  if (pairs || import.IsDynamic(node.inputs[0]) || import.IsDynamic(node.inputs[1])) return absl::OkStatus();
  const ecg::ValueId last = import.AddConstant(Tensor::From<int64_t>(DType::kI64, {1}, {context.Rank(1) - 1}));
  ASSIGN_OR_RETURN(const auto indices, import.AddNode("Squeeze", {node.inputs[1], last}, {}));
  ecg::Attributes axis;
  axis.Set("axis", int64_t{0});
  ASSIGN_OR_RETURN(const auto gathered, import.AddNode("Gather", {node.inputs[0], indices[0]}, axis));
  import.ReplaceWith({gathered[0]});
  return absl::OkStatus();
}

OpDef Define(std::string name, int inputs, std::vector<AttrSpec> attrs) {
  OpDef def;
  def.name = std::move(name);
  def.min_inputs = def.max_inputs = inputs;
  def.attrs = std::move(attrs);
  def.mapping = Always(MappingType::kOneToMany);
  def.flops = NoFlops;
  return def;
}

}  // namespace

std::vector<OpDef> GatherOps() {
  OpDef gather = Define("Gather", 2, {{"axis", AttrKind::kInt}});
  gather.roles = {InputRole::kData, InputRole::kIndices};
  gather.infer = InferGather;
  gather.lower = LowerGather;
  gather.dynamic = DynamicGather;
  gather.normalize = CheckIndices;

  OpDef elements = Define("GatherElements", 2, {{"axis", AttrKind::kInt}});
  elements.infer = InferGatherElements;
  elements.lower = LowerGatherElements;
  elements.dynamic = DynamicGather;
  elements.normalize = CheckIndices;

  OpDef nd = Define("GatherND", 2, {{"batch_dims", AttrKind::kInt}});
  nd.infer = InferGatherND;
  nd.lower = LowerGatherND;
  nd.dynamic = DynamicGatherND;
  nd.normalize = NormalizeGatherND;

  OpDef one_hot = Define("OneHot", 3, {{"axis", AttrKind::kInt}});
  one_hot.roles = {InputRole::kData, InputRole::kScalar, InputRole::kData};
  one_hot.infer = InferOneHot;
  one_hot.lower = LowerOneHot;

  return {gather, elements, nd, one_hot};
}

}  // namespace fusion::ops
