#include <map>
#include <numeric>
#include <utility>

#include "compiler/ops/op_def.h"
#include "compiler/simplify/passes.h"
#include "compiler/te/interpreter.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

absl::StatusOr<Outputs> Interpret(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  RETURN_IF_ERROR(ecg::Verify(graph));
  std::vector<ecg::NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<ecg::ValueId> computed;
  for (ecg::ValueId id : graph.outputs()) {
    if (!graph.value(id).constant.has_value()) computed.push_back(id);
  }
  ASSIGN_OR_RETURN(const ops::LoweredBlock block, ops::LowerNodes(graph, nodes, computed));
  std::map<ecg::ValueId, Tensor> bound;
  for (size_t i = 0; i < graph.inputs().size(); ++i) bound[graph.inputs()[i]] = inputs[i];
  std::vector<Tensor> arguments;
  for (te::TensorId id : block.program.inputs) {
    const ecg::ValueId value = block.value_of_tensor[id];
    if (value == ecg::kNone) {
      arguments.emplace_back();
    } else if (graph.value(value).constant.has_value()) {
      arguments.push_back(*graph.value(value).constant);
    } else {
      arguments.push_back(bound[value]);
    }
  }
  ASSIGN_OR_RETURN(const Outputs results, te::Interpret(block.program, arguments));
  Outputs outputs;
  size_t next = 0;
  for (ecg::ValueId id : graph.outputs()) {
    const std::optional<Tensor>& constant = graph.value(id).constant;
    outputs.push_back(constant.has_value() ? *constant : results[next++]);
  }
  return outputs;
}

ModeFunction InterpretEach(ecg::Graph (*prepare)(const ecg::Graph&)) {
  return [prepare](const std::vector<TestCase>& cases, const ModeOptions&) {
    std::vector<absl::StatusOr<Outputs>> results;
    for (const TestCase& test : cases) {
      auto imported = ImportCase(test);
      if (!imported.ok()) {
        results.push_back(imported.status());
      } else {
        results.push_back(Interpret(prepare == nullptr ? imported->graph : prepare(imported->graph), imported->inputs));
      }
    }
    return results;
  };
}

}  // namespace

std::vector<Mode> InterpreterModes() {
  return {{"interpreter", InterpretEach(nullptr)}, {"simplified", InterpretEach(simplify::Simplify)}};
}

}  // namespace fusion::conformance
