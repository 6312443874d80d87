#include "compiler/onnx/structural/appended.h"

#include "compiler/ops/registry/op_def.h"

namespace fusion::onnx_import {
namespace {

// Returns the tensor that a map copies, all of it and nothing else, into [begin, begin + extent) of dimension `dim` of
// its result; -1 if there is none.
te::TensorId CopiedInto(te::Program* program, const te::Te& te, size_t dim, int64_t begin, int64_t extent) {
  const te::Axis part = program->NewAxis(extent);
  const te::Index moved = te::Index(part) + te::Index(begin);
  const te::Scalar body =
      te::Substitute(te.body[0], [&](const te::Axis& a) { return a.id == te.axes[dim].id ? &moved : nullptr; });
  if (body->kind != te::ScalarKind::kLoad || body->pad != nullptr) return -1;
  const Shape& shape = program->tensors[body->tensor].shape;
  if (shape.size() != te.axes.size()) return -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const te::Axis& axis = d == dim ? part : te.axes[d];
    if (!(body->indices[d] == te::Index(axis)) || shape[d] != axis.extent) return -1;
  }
  return body->tensor;
}

}  // namespace

std::optional<Appended> AppendedTo(const ecg::Graph& graph, ecg::ValueId start, ecg::ValueId whole) {
  const ecg::NodeId producer = graph.value(whole).producer;
  const Shape& from = graph.value(start).type.shape;
  const Shape& to = graph.value(whole).type.shape;
  if (producer == ecg::kNone || from.size() != to.size()) return std::nullopt;
  int axis = -1;
  for (size_t d = 0; d < to.size(); ++d) {
    if (from[d] == to[d]) continue;
    if (axis >= 0 || from[d] > to[d]) return std::nullopt;
    axis = static_cast<int>(d);
  }
  if (axis < 0 || NumElements(to) == 0) return std::nullopt;
  auto lowered = ops::LowerNodes(graph, {producer}, {whole});
  if (!lowered.ok()) return std::nullopt;
  te::Program& program = lowered->program;
  const te::Te te = program.tes[static_cast<size_t>(program.DefiningTe(program.outputs[0]))];
  if (!te.IsMap() || te.outputs.size() != 1) return std::nullopt;
  const auto value_copied = [&](int64_t begin, int64_t extent) {
    const te::TensorId tensor = CopiedInto(&program, te, static_cast<size_t>(axis), begin, extent);
    return tensor < 0 ? ecg::kNone : lowered->value_of_tensor[static_cast<size_t>(tensor)];
  };
  const int64_t behind = from[axis];
  if (behind > 0 && value_copied(0, behind) != start) return std::nullopt;
  const ecg::ValueId piece = value_copied(behind, to[axis] - behind);
  if (piece == ecg::kNone) return std::nullopt;
  return Appended{axis, piece};
}

}  // namespace fusion::onnx_import
