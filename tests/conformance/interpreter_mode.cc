#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "compiler/ops/op_def.h"
#include "compiler/simplify/passes.h"
#include "compiler/te/interpreter.h"
#include "runtime/base/pack_box.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

// The outputs of the model, cut to their extents.
Outputs WithoutWhatIsNotThere(const ecg::Graph& graph, Outputs all) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : all) shapes.push_back(tensor.shape());
  for (const ecg::OutputExtent& e : graph.output_extents()) shapes[e.output][e.dim] = all[e.extent].GetInt(0);
  Outputs outputs;
  for (size_t i = 0; i < all.size() && !graph.output_names()[i].empty(); ++i) {
    if (shapes[i] == all[i].shape()) {
      outputs.push_back(all[i]);
      continue;
    }
    Tensor whole(all[i].dtype(), all[i].shape());
    std::memcpy(whole.mutable_data(), all[i].data(), static_cast<size_t>(whole.size_bytes()));
    PackBox(whole.mutable_data(), DTypeBytes(whole.dtype()), whole.shape(), shapes[i]);
    Tensor part(whole.dtype(), shapes[i]);
    if (part.size_bytes() > 0) std::memcpy(part.mutable_data(), whole.data(), static_cast<size_t>(part.size_bytes()));
    outputs.push_back(std::move(part));
  }
  return outputs;
}

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
  return WithoutWhatIsNotThere(graph, std::move(outputs));
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
