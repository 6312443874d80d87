#include "compiler/onnx/structural/repeat.h"

#include <algorithm>
#include <utility>

#include "compiler/ops/control/loop.h"

namespace fusion::onnx_import {
namespace {

using Values = std::vector<ecg::ValueId>;

class Adding {
 public:
  Adding(StructuralContext& importer, const Repetition& repetition)
      : importer_(importer), canonical_(importer.canonical()), repetition_(repetition) {}

  std::optional<Values> Run() {
    if (repetition_.trips < ops::kLeastTrips || repetition_.states.size() + repetition_.scanned.size() == 0 ||
        !Static(repetition_.states) || !Static(repetition_.scanned)) {
      return std::nullopt;
    }
    const size_t checks = canonical_.checks.size();
    std::optional<Values> results = AddAll();
    // The checks of an iteration that is not kept do not belong to the model.
    if (!results) canonical_.checks.resize(checks);
    return results;
  }

 private:
  bool Static(const Values& values) const {
    return std::none_of(values.begin(), values.end(), [&](ecg::ValueId v) { return canonical_.extents.IsDynamic(v); });
  }

  std::optional<Values> AddAll() {
    const size_t carried = repetition_.states.size();
    const size_t checks = canonical_.checks.size();
    const auto first = static_cast<ecg::NodeId>(canonical_.graph.nodes().size());
    Values inputs = repetition_.states;
    inputs.insert(inputs.end(), repetition_.scanned.begin(), repetition_.scanned.end());
    const int count = static_cast<int>(inputs.size());
    const auto begin =
        importer_.AddNodes(ops::kLoopBegin, std::move(inputs), Attributes(first, repetition_.reversed_in), count);
    if (!begin.ok()) return std::nullopt;
    const auto slices = begin->begin() + static_cast<std::ptrdiff_t>(carried);
    const std::optional<Values> outputs = repetition_.body({begin->begin(), slices}, {slices, begin->end()});
    if (!outputs || outputs->size() != carried + repetition_.reversed_out.size() || !Static(*outputs) ||
        canonical_.checks.size() != checks || HasLoop(first + 1)) {
      return std::nullopt;
    }
    for (size_t k = 0; k < carried; ++k) {
      if (!(TypeOf((*outputs)[k]) == TypeOf(repetition_.states[k]))) return std::nullopt;
    }
    Values results = {(*begin)[0]};
    results.insert(results.end(), outputs->begin(), outputs->end());
    const int num_results = static_cast<int>(outputs->size());
    const auto end =
        importer_.AddNodes(ops::kLoopEnd, std::move(results), Attributes(first, repetition_.reversed_out), num_results);
    if (!end.ok()) return std::nullopt;
    return *end;
  }

  bool HasLoop(ecg::NodeId first) const {
    const std::vector<ecg::Node>& nodes = canonical_.graph.nodes();
    return std::any_of(nodes.begin() + first, nodes.end(), [](const ecg::Node& n) { return ops::IsLoopBoundary(n); });
  }

  const ecg::ValueType& TypeOf(ecg::ValueId v) const { return canonical_.graph.value(v).type; }

  ecg::Attributes Attributes(int64_t loop, const std::vector<int64_t>& reversed) const {
    return ops::LoopAttributes(loop, {repetition_.trips, static_cast<int>(repetition_.states.size()), reversed});
  }

  StructuralContext& importer_;
  CanonicalGraph& canonical_;
  const Repetition& repetition_;
};

}  // namespace

std::optional<Values> AddRepetition(StructuralContext& importer, const Repetition& repetition) {
  return Adding(importer, repetition).Run();
}

std::optional<Values> TensorsOf(const absl::StatusOr<std::vector<ImportedValue>>& outputs) {
  if (!outputs.ok()) return std::nullopt;
  Values tensors;
  for (const ImportedValue& output : *outputs) {
    if (output.kind != ImportedValue::Kind::kTensor || output.tensor == ecg::kNone) return std::nullopt;
    tensors.push_back(output.tensor);
  }
  return tensors;
}

}  // namespace fusion::onnx_import
