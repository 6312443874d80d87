#include "compiler/rewrite/graph_testing.h"

#include <map>
#include <numeric>

#include "compiler/ops/op_def.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {

absl::StatusOr<std::vector<Tensor>> ComputeGraph(const ecg::Graph& graph, const std::vector<Tensor>& inputs,
                                                 const te::InterpretOptions& options) {
  std::vector<ecg::NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<ecg::ValueId> computed;
  for (ecg::ValueId id : graph.outputs()) {
    if (graph.value(id).producer != ecg::kNone) computed.push_back(id);
  }
  ASSIGN_OR_RETURN(const ops::LoweredBlock block, ops::LowerNodes(graph, nodes, computed));
  std::map<ecg::ValueId, Tensor> known;
  for (size_t i = 0; i < graph.inputs().size(); ++i) known[graph.inputs()[i]] = inputs[i];
  std::vector<Tensor> arguments;
  for (te::TensorId id : block.program.inputs) {
    arguments.push_back(known[block.value_of_tensor[id]]);  // a constant brings its own bytes
  }
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, te::Interpret(block.program, arguments, options));
  for (size_t i = 0; i < computed.size(); ++i) known[computed[i]] = results[i];
  std::vector<Tensor> outputs;
  for (ecg::ValueId id : graph.outputs()) {
    const std::optional<Tensor>& constant = graph.value(id).constant;
    outputs.push_back(constant.has_value() ? *constant : known[id]);
  }
  return outputs;
}

}  // namespace fusion::rewrite
