// Keeps a loop of the model as a loop of the graph (compiler/ops/control/loop.h), where nothing about an iteration
// depends on which one it is but values.
#ifndef FUSION_COMPILER_ONNX_STRUCTURAL_REPEAT_H_
#define FUSION_COMPILER_ONNX_STRUCTURAL_REPEAT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/onnx/imported_value.h"
#include "compiler/onnx/structural/structural_context.h"

namespace fusion::onnx_import {

struct Repetition {
  int64_t trips = 0;
  std::vector<ecg::ValueId> states;   // before the first iteration
  std::vector<ecg::ValueId> scanned;  // the iterations lie along axis 0
  std::vector<int64_t> reversed_in;   // parallel to `scanned`; 1: from the end
  std::vector<int64_t> reversed_out;  // for each stacked result; 1: the last iteration comes first
  // Imports one iteration. Returns the next states, then what is stacked, or nullopt where the iteration does not fit.
  using Body = std::function<std::optional<std::vector<ecg::ValueId>>(const std::vector<ecg::ValueId>& states,
                                                                      const std::vector<ecg::ValueId>& slices)>;
  Body body;
};

// Returns the states after the last iteration, then the stacks. Returns nullopt where there are too few iterations,
// where extents depend on data or change from one iteration to the next, where a loop would contain another one, or
// where `body` fails. The loop must then be written out; what was added for it is dead.
std::optional<std::vector<ecg::ValueId>> AddRepetition(StructuralContext& importer, const Repetition& repetition);

// Returns the tensors that a body's outputs are; nullopt after an error, or where one is no tensor.
std::optional<std::vector<ecg::ValueId>> TensorsOf(const absl::StatusOr<std::vector<ImportedValue>>& outputs);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_STRUCTURAL_REPEAT_H_
