#include "compiler/onnx/partial_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "compiler/ops/registry/op_def.h"

namespace fusion::onnx_import {

bool IsBounded(const te::Known& known) {
  constexpr double kFar = 1e9;
  return known.IsPoint() || (known.lo >= -kFar && known.hi <= kFar);
}

std::optional<te::KnownTensor> PartialGraph::KnownOf(ecg::ValueId value) {
  constexpr int kFarthest = 256;
  auto known = extents.KnownOf(value);
  if (known || graph.value(value).producer == ecg::kNone) return known;
  LookAt(graph.value(value).producer, kFarthest);
  return extents.KnownOf(value);
}

void PartialGraph::LookAt(ecg::NodeId id, int depth) {
  if (!looked_at_.insert(id).second) return;
  const std::vector<ecg::ValueId> outputs = graph.node(id).outputs;
  const auto lowered = ops::LowerNodes(graph, {id}, outputs);
  if (!lowered.ok()) return;
  const auto know = [&] {
    std::vector<std::optional<te::KnownTensor>> arguments;
    for (te::TensorId t : lowered->program.inputs) {
      // A table that the lowering added is not a value of the graph.
      const ecg::ValueId id = lowered->value_of_tensor[t];
      arguments.push_back(id == ecg::kNone ? std::nullopt : extents.KnownOf(id));
    }
    return te::Know(lowered->program, arguments);
  };
  const auto bounded = [](const std::optional<te::KnownTensor>& known) {
    return known && std::all_of(known->begin(), known->end(), IsBounded);
  };
  std::vector<std::optional<te::KnownTensor>> known = know();
  if (depth > 0 && !std::all_of(known.begin(), known.end(), bounded)) {
    for (te::TensorId t : lowered->program.inputs) {
      const ecg::ValueId id = lowered->value_of_tensor[t];
      if (id == ecg::kNone) continue;
      const ecg::NodeId producer = graph.value(id).producer;
      if (producer != ecg::kNone && !extents.KnownOf(id)) LookAt(producer, depth - 1);
    }
    known = know();
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (known[o] && !extents.KnownOf(outputs[o])) extents.SetKnown(outputs[o], *std::move(known[o]));
  }
}

}  // namespace fusion::onnx_import
