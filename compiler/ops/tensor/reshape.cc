// Reshape, Flatten, Squeeze, Unsqueeze, Identity; Dropout in inference becomes Identity on import. Each is one map
// y[i] = x[delinearise(linearise(i))], which the index normal form reduces to the dimensions that change.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/dynamic/dynamic_reshape.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "compiler/ops/shared/axes.h"
#include "compiler/ops/shared/elementwise.h"
#include "compiler/ops/shared/extents.h"
#include "compiler/ops/shared/index_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

absl::Status LowerReshape(LowerContext& context) {
  DefineMap(context, 0, [&](const te::Builder::Idx& i) {
    return context.builder->At(context.in[0], ReshapeIndices(i, context.output_types[0].shape, context.ShapeOf(0)));
  });
  return absl::OkStatus();
}

absl::StatusOr<Types> InferReshape(const OpContext& context, int) {
  ASSIGN_OR_RETURN(Shape shape, context.ConstantInts(1, "shape"));
  const Shape& in = context.ShapeOf(0);
  const bool allow_zero = context.attrs.Int("allowzero") != 0;
  int unknown = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0 && !allow_zero) {
      if (d >= in.size())
        return context.Error(absl::StrCat("shape[", d, "] = 0 copies a dimension that the input lacks"));
      shape[d] = in[d];
    } else if (shape[d] == -1) {
      if (unknown >= 0) return context.Error("shape has more than one -1");
      unknown = static_cast<int>(d);
    } else if (shape[d] < 0) {
      return context.Error(absl::StrCat("shape[", d, "] = ", shape[d], " is negative"));
    }
  }
  if (unknown >= 0) {
    shape[unknown] = 1;
    ASSIGN_OR_RETURN(const int64_t bytes, CheckedSizeBytes(shape, DType::kU8));
    if (bytes == 0 || NumElements(in) % bytes != 0) {
      shape[unknown] = -1;
      return context.Error(absl::StrCat("cannot reshape ", ShapeToString(in), " to ", ShapeToString(shape)));
    }
    shape[unknown] = NumElements(in) / bytes;
  }
  ASSIGN_OR_RETURN(const int64_t elements, CheckedSizeBytes(shape, DType::kU8));
  if (elements != NumElements(in)) {
    return context.Error(absl::StrCat("cannot reshape ", ShapeToString(in), " to ", ShapeToString(shape)));
  }
  return Types{{context.Type(0).dtype, shape}};
}

absl::StatusOr<int> FlattenAxis(const OpContext& context) {
  const int64_t given = context.attrs.Int("axis", 1);
  if (given == context.Rank(0)) return context.Rank(0);  // one behind the last dimension is allowed too
  return NormalizeAxis(context, given, context.Rank(0));
}

absl::StatusOr<Types> InferFlatten(const OpContext& context, int) {
  const Shape& in = context.ShapeOf(0);
  ASSIGN_OR_RETURN(const int axis, FlattenAxis(context));
  return Types{{context.Type(0).dtype,
                {NumElements({in.begin(), in.begin() + axis}), NumElements({in.begin() + axis, in.end()})}}};
}

absl::StatusOr<Types> InferSqueeze(const OpContext& context, int) {
  const Shape& in = context.ShapeOf(0);
  Shape out;
  if (!context.Has(1)) {
    std::copy_if(in.begin(), in.end(), std::back_inserter(out), [](int64_t extent) { return extent != 1; });
    return Types{{context.Type(0).dtype, out}};
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, context.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  for (int d = 0; d < context.Rank(0); ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) {
      out.push_back(in[d]);
    } else if (in[d] != 1) {
      return context.Error(absl::StrCat("axis ", d, " of ", ShapeToString(in), " is not 1"));
    }
  }
  return Types{{context.Type(0).dtype, out}};
}

absl::StatusOr<Types> InferUnsqueeze(const OpContext& context, int) {
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, context.ConstantInts(1, "axes"));
  const int rank = context.Rank(0) + static_cast<int>(axes.size());
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, rank));
  Shape out(rank, 0);
  for (int64_t axis : axes) out[axis] = 1;
  auto next = context.ShapeOf(0).begin();
  for (int d = 0; d < rank; ++d) {
    if (std::find(axes.begin(), axes.end(), d) == axes.end()) out[d] = *next++;
  }
  return Types{{context.Type(0).dtype, out}};
}

absl::StatusOr<Types> InferIdentity(const OpContext& context, int) { return Types{context.Type(0)}; }

absl::Status AxesToInput(ImportContext& import) {
  AttributeToInput(import, "axes", 1);
  return absl::OkStatus();
}

// A dynamic dimension that is squeezed has one element.
absl::Status DynamicFlatten(ImportContext& import) {
  const ecg::Node node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const int axis, FlattenAxis(context));
  std::vector<ecg::ValueId> extents = {IntScalar(import, 1), IntScalar(import, 1)};
  for (int d = 0; d < context.Rank(0); ++d) {
    ecg::ValueId& product = extents[d < axis ? 0 : 1];
    ASSIGN_OR_RETURN(product, ScalarOp(import, "Mul", product, import.Extent(node.inputs[0], d)));
  }
  ASSIGN_OR_RETURN(const ecg::ValueId shape, Stack(import, extents));
  ecg::Attributes attrs;
  attrs.Set("allowzero", int64_t{1});
  ASSIGN_OR_RETURN(const auto outputs, import.AddNode("Reshape", {node.inputs[0], shape}, std::move(attrs)));
  import.ReplaceWith(outputs);
  return absl::OkStatus();
}

absl::Status DynamicSqueeze(ImportContext& import) {
  ecg::Node& node = import.node();
  std::vector<ecg::Value> held;
  const OpContext context = ContextOf(import, &held);
  if (!context.Has(0)) return absl::OkStatus();
  if (!context.Has(1) && import.IsDynamic(node.inputs[0])) {
    return context.Unsupported("its input's extents depend on data, so axes must say which dimensions go");
  }
  if (!context.Has(1)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, context.ConstantInts(1, "axes"));
  ASSIGN_OR_RETURN(axes, DistinctAxes(context, axes, context.Rank(0)));
  for (int64_t axis : axes) {
    const ecg::ValueId x = node.inputs[0];
    if (!import.IsDynamic(x, static_cast<int>(axis))) continue;
    std::vector<ecg::ValueId> extents = ExtentsOf(import, x);
    extents[axis] = ecg::kNone;
    ASSIGN_OR_RETURN(const ecg::ValueId first, Cut(import, x, static_cast<int>(axis), 1));
    ASSIGN_OR_RETURN(node.inputs[0], import.WithExtents(first, std::move(extents)));
  }
  return absl::OkStatus();
}

// Inference: the data passes through, and the mask, if requested, is all ones.
absl::Status NormalizeDropout(ImportContext& import) {
  const ecg::Node node = import.node();
  if (import.input(0) == nullptr) return absl::OkStatus();  // CheckSchema refuses it
  const ecg::Value* training = import.input(2);
  const ecg::Value* ratio = import.input(1);
  const bool known = training != nullptr && training->constant.has_value() && training->constant->num_elements() == 1;
  if (training != nullptr && !(known && training->constant->GetInt(0) == 0)) {
    const bool keeps_all = ratio != nullptr && ratio->constant.has_value() && ratio->constant->num_elements() == 1 &&
                           ratio->constant->GetDouble(0) == 0;
    if (!keeps_all) {
      return absl::UnimplementedError(absl::StrCat("Dropout '", node.name, "': training mode is not supported"));
    }
  }
  ASSIGN_OR_RETURN(std::vector<ecg::ValueId> outputs, import.AddNode("Identity", {node.inputs[0]}, {}));
  if (node.outputs.size() > 1) {
    // The mask is a node rather than a constant: it may be as large as the data, and usually nothing reads it.
    const DType dtype = import.opset() >= 10 ? DType::kBool : import.input(0)->type.dtype;
    ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> shape, import.AddNode("Shape", {node.inputs[0]}, {}));
    ecg::Attributes ones;
    ones.Set("value", Tensor::From<int64_t>(dtype, {1}, {1}));
    ASSIGN_OR_RETURN(const std::vector<ecg::ValueId> mask, import.AddNode("ConstantOfShape", shape, ones));
    outputs.push_back(mask[0]);
  }
  import.ReplaceWith(std::move(outputs));
  return absl::OkStatus();
}

OpDef Define(std::string name, std::function<absl::StatusOr<Types>(const OpContext&, int)> infer) {
  OpDef def;
  def.name = std::move(name);
  def.infer = std::move(infer);
  def.mapping = Always(MappingType::kReorganize);
  def.flops = NoFlops;
  def.lower = LowerReshape;
  return def;
}

}  // namespace

std::vector<OpDef> ReshapeOps() {
  OpDef reshape = Define("Reshape", InferReshape);
  reshape.min_inputs = reshape.max_inputs = 2;
  reshape.roles = {InputRole::kData, InputRole::kExtents};
  reshape.attrs = {{"allowzero", AttrKind::kInt}};
  reshape.dynamic = DynamicReshape;

  OpDef flatten = Define("Flatten", InferFlatten);
  flatten.attrs = {{"axis", AttrKind::kInt}};
  flatten.dynamic = DynamicFlatten;

  OpDef squeeze = Define("Squeeze", InferSqueeze);
  squeeze.max_inputs = 2;
  squeeze.roles = {InputRole::kData, InputRole::kAxes};
  squeeze.normalize = AxesToInput;
  squeeze.dynamic = DynamicSqueeze;

  OpDef unsqueeze = Define("Unsqueeze", InferUnsqueeze);
  unsqueeze.min_inputs = unsqueeze.max_inputs = 2;
  unsqueeze.roles = {InputRole::kData, InputRole::kAxes};
  unsqueeze.normalize = AxesToInput;

  OpDef identity = Define("Identity", InferIdentity);
  identity.mapping = Always(MappingType::kOneToOne);

  OpDef dropout = Define("Dropout", InferIdentity);
  dropout.max_inputs = 3;
  dropout.num_outputs = 2;
  dropout.attrs = {{"seed", AttrKind::kInt}, {"ratio", AttrKind::kFloat}};
  dropout.mapping = Always(MappingType::kOneToOne);
  dropout.normalize = NormalizeDropout;

  return {reshape, flatten, squeeze, unsqueeze, identity, dropout};
}

}  // namespace fusion::ops
