#include "compiler/onnx/partial_graph.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::onnx_import {

bool IsBounded(const te::ValueRange& range) {
  constexpr double kFar = 1e9;
  return range.IsPoint() || (range.lo >= -kFar && range.hi <= kFar);
}

std::optional<te::TensorRanges> PartialGraph::RangesOf(ecg::ValueId value) {
  constexpr int kFarthest = 256;
  auto ranges = extents.RangesOf(value);
  if (ranges || graph.value(value).producer == ecg::kNone) return ranges;
  LookAt(graph.value(value).producer, kFarthest);
  return extents.RangesOf(value);
}

void PartialGraph::LookAt(ecg::NodeId id, int depth) {
  if (!looked_at_.insert(id).second) return;
  if (ops::IsLoopBoundary(graph.node(id))) return;  // what holds of one iteration does not hold of all
  const std::vector<ecg::ValueId> outputs = graph.node(id).outputs;
  const auto lowered = ops::LowerNodes(graph, {id}, outputs);
  if (!lowered.ok()) return;
  const auto infer = [&] {
    std::vector<std::optional<te::TensorRanges>> arguments;
    for (te::TensorId t : lowered->program.inputs) {
      // A table that the lowering added is not a value of the graph.
      const ecg::ValueId id = lowered->value_of_tensor[t];
      arguments.push_back(id == ecg::kNone ? std::nullopt : extents.RangesOf(id));
    }
    return te::InferRanges(lowered->program, arguments);
  };
  const auto bounded = [](const std::optional<te::TensorRanges>& ranges) {
    return ranges && std::all_of(ranges->begin(), ranges->end(), IsBounded);
  };
  std::vector<std::optional<te::TensorRanges>> ranges = infer();
  if (depth > 0 && !std::all_of(ranges.begin(), ranges.end(), bounded)) {
    for (te::TensorId t : lowered->program.inputs) {
      const ecg::ValueId id = lowered->value_of_tensor[t];
      if (id == ecg::kNone) continue;
      const ecg::NodeId producer = graph.value(id).producer;
      if (producer != ecg::kNone && !extents.RangesOf(id)) LookAt(producer, depth - 1);
    }
    ranges = infer();
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (ranges[o] && !extents.RangesOf(outputs[o])) extents.SetRanges(outputs[o], *std::move(ranges[o]));
  }
}

}  // namespace fusion::onnx_import
