#include "compiler/rewrite/graph_testing.h"

#include "compiler/ops/op_def.h"
#include "compiler/te/interpreter.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {

absl::StatusOr<std::vector<Tensor>> ComputeGraph(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  std::vector<ecg::NodeId> nodes(graph.nodes().size());
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<ecg::NodeId>(i);
  ASSIGN_OR_RETURN(const ops::LoweredBlock block, ops::LowerNodes(graph, nodes, graph.outputs()));
  std::vector<Tensor> operands;
  for (te::TensorId id : block.program.inputs) {
    const ecg::ValueId value =
        static_cast<size_t>(id) < block.value_of_tensor.size() ? block.value_of_tensor[id] : ecg::kNone;
    operands.emplace_back();  // a constant brings its own bytes
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (graph.inputs()[i] == value) operands.back() = inputs[i];
    }
  }
  return te::Interpret(block.program, operands);
}

}  // namespace fusion::rewrite
