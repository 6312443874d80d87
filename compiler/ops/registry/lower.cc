// LowerNodes: turns the nodes of a fusion block into one tensor expression program.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/ecg/rounded.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/scalar/rounded.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

class FusionBlockLowering {
 public:
  explicit FusionBlockLowering(const ecg::Graph& graph) : graph_(graph), builder_(&block_.program) {}

  // `position`: of the node in the fusion block.
  absl::Status Lower(const ecg::Node& node, int position) {
    const OpDef* def = FindOp(node.op);
    if (def == nullptr) return absl::InternalError(absl::StrCat("unknown operator '", node.op, "'"));
    const OpContext view = MakeContext(graph_, node);
    if (!def->lower) return view.Unsupported("has no lowering to tensor expressions");

    LowerContext context(view.op, view.node_name, view.attrs, view.inputs);
    context.builder = &builder_;
    for (ecg::ValueId id : node.inputs) context.in.push_back(id == ecg::kNone ? -1 : TensorOf(id));
    for (ecg::ValueId id : node.outputs) context.output_types.push_back(graph_.value(id).type);
    context.out.assign(node.outputs.size(), -1);
    const size_t first = block_.program.tes.size();
    RETURN_IF_ERROR(def->lower(context));

    for (size_t i = 0; i < node.outputs.size(); ++i) {
      te::TensorId tensor = context.out[i];
      const ecg::ValueType& type = context.output_types[i];
      if (tensor < 0) return absl::InternalError(absl::StrCat(node.op, ": lowering leaves output ", i, " undefined"));
      Grow();
      // A lowering may return an input as its output (Identity), but every value must have its own tensor.
      if (block_.value_of_tensor[tensor] != ecg::kNone ||
          block_.program.tensors[tensor].role != te::Role::kIntermediate) {
        tensor = Copy(tensor);
      }
      const te::TensorInfo& info = block_.program.tensors[tensor];
      if (info.dtype != type.dtype || info.shape != type.shape) {
        return absl::InternalError(absl::StrCat(node.op, ": lowering of output ", i, " gives ", DTypeName(info.dtype),
                                                ShapeToString(info.shape), ", inferred ", DTypeName(type.dtype),
                                                ShapeToString(type.shape)));
      }
      Bind(node.outputs[i], tensor);
      if (node.attrs.Int(ecg::kRounded) != 0 && IsFloat(type.dtype)) Round(tensor);
    }
    for (size_t t = first; t < block_.program.tes.size(); ++t) block_.program.tes[t].origins = {position};
    return absl::OkStatus();
  }

  absl::Status MarkOutput(ecg::ValueId id) {
    const auto it = tensors_.find(id);
    if (it == tensors_.end()) return absl::InternalError(absl::StrCat("live-out value ", id, " is not defined"));
    te::TensorInfo& info = block_.program.tensors[it->second];
    if (info.role != te::Role::kIntermediate) {
      return absl::InternalError(absl::StrCat("live-out value ", id, " is not computed by the fusion block"));
    }
    info.role = te::Role::kOutput;
    block_.program.outputs.push_back(it->second);
    return absl::OkStatus();
  }

  LoweredFusionBlock Finish() {
    Grow();
    return std::move(block_);
  }

 private:
  void Grow() { block_.value_of_tensor.resize(block_.program.tensors.size(), ecg::kNone); }

  void Bind(ecg::ValueId id, te::TensorId tensor) {
    Grow();
    tensors_[id] = tensor;
    block_.value_of_tensor[tensor] = id;
    block_.program.tensors[tensor].name = graph_.value(id).name;
  }

  te::TensorId TensorOf(ecg::ValueId id) {
    const auto it = tensors_.find(id);
    if (it != tensors_.end()) return it->second;
    const ecg::Value& value = graph_.value(id);
    const te::Role role = value.constant ? te::Role::kConstant : te::Role::kInput;
    const te::TensorId tensor = block_.program.AddTensor(value.name, value.type.dtype, value.type.shape, role);
    if (!value.opaque) block_.program.tensors[tensor].constant = value.constant;
    Bind(id, tensor);
    return tensor;
  }

  void Round(te::TensorId tensor) {
    te::Te& te = block_.program.tes[static_cast<size_t>(block_.program.DefiningTe(tensor))];
    if (te.routine) return;
    if (te.reduction && te.then.empty()) {
      const bool named = te.reduction->kind != te::ReductionKind::kGeneral;
      for (size_t o = 0; o < te.outputs.size(); ++o) {
        te.then.push_back(te::Cast(block_.program.tensors[te.outputs[o]].dtype,
                                   te::Acc(static_cast<int>(o), named ? te.reduction->acc : te.body[o]->dtype)));
      }
    }
    for (size_t o = 0; o < te.outputs.size(); ++o) {
      te::Scalar& result = te.reduction ? te.then[o] : te.body[o];
      if (te.outputs[o] == tensor) result = te::Rounded(result);
    }
  }

  te::TensorId Copy(te::TensorId tensor) {
    const te::TensorInfo info = builder_.info(tensor);
    return builder_.Map("copy", info.dtype, info.shape,
                        [&](const te::Builder::Idx& i) { return builder_.At(tensor, i); });
  }

  const ecg::Graph& graph_;
  LoweredFusionBlock block_;
  te::Builder builder_;
  std::map<ecg::ValueId, te::TensorId> tensors_;
};

}  // namespace

absl::StatusOr<LoweredFusionBlock> LowerNodes(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes,
                                              const std::vector<ecg::ValueId>& live_out) {
  FusionBlockLowering lowering(graph);
  for (size_t i = 0; i < nodes.size(); ++i) {
    RETURN_IF_ERROR(lowering.Lower(graph.node(nodes[i]), static_cast<int>(i)));
  }
  for (ecg::ValueId id : live_out) RETURN_IF_ERROR(lowering.MarkOutput(id));
  return lowering.Finish();
}

}  // namespace fusion::ops
