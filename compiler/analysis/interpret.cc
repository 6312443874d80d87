#include "compiler/analysis/interpret.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "compiler/ops/control/unroll_loops.h"
#include "compiler/ops/registry/op_def.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {

absl::StatusOr<LoweredGraph> LoweredGraph::Make(const Graph& source) {
  RETURN_IF_ERROR(Verify(source));
  ASSIGN_OR_RETURN(Graph unrolled, UnrollLoops(source));
  auto owned = std::make_unique<const Graph>(std::move(unrolled));
  const Graph& graph = *owned;
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), 0);
  std::vector<ValueId> computed;
  for (ValueId id : graph.outputs()) {
    if (graph.value(id).producer != kNone) computed.push_back(id);
  }
  ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered, ops::LowerNodes(graph, nodes, computed));
  return LoweredGraph(std::move(owned), std::move(computed), std::move(lowered));
}

const Tensor* LoweredGraph::ConstantOf(te::TensorId tensor) const {
  const ValueId value =
      tensor < static_cast<te::TensorId>(lowered_.value_of_tensor.size()) ? lowered_.value_of_tensor[tensor] : kNone;
  const std::optional<Tensor>& constant =
      value == kNone ? lowered_.program.tensors[tensor].constant : graph_->value(value).constant;
  return constant.has_value() ? &*constant : nullptr;
}

std::vector<Tensor> LoweredGraph::ArgumentsOf(const te::Program& program, const std::vector<Tensor>& inputs) const {
  std::map<ValueId, const Tensor*> known;
  for (size_t i = 0; i < graph_->inputs().size(); ++i) known[graph_->inputs()[i]] = &inputs[i];
  const auto numbered = static_cast<te::TensorId>(lowered_.value_of_tensor.size());
  std::vector<Tensor> arguments;
  for (te::TensorId id : program.inputs) {
    const ValueId value = id < numbered ? lowered_.value_of_tensor[id] : kNone;
    if (value == kNone) {
      arguments.emplace_back();  // a table that a lowering or a pass made carries its own bytes
    } else if (graph_->value(value).constant.has_value()) {
      arguments.push_back(*graph_->value(value).constant);
    } else {
      arguments.push_back(*known.at(value));
    }
  }
  return arguments;
}

absl::StatusOr<Tensor> LoweredGraph::ValueIn(te::Program program, te::TensorId tensor,
                                             const std::vector<Tensor>& inputs) const {
  const auto computes = [&](const te::Te& te) {
    return std::find(te.outputs.begin(), te.outputs.end(), tensor) != te.outputs.end();
  };
  const auto last = std::find_if(program.tes.begin(), program.tes.end(), computes);
  if (last == program.tes.end()) return absl::InvalidArgumentError("no expression computes the tensor");
  program.tes.erase(last + 1, program.tes.end());
  program.outputs = {tensor};
  ASSIGN_OR_RETURN(std::vector<Tensor> values, te::Interpret(program, ArgumentsOf(program, inputs)));
  return std::move(values[0]);
}

absl::StatusOr<std::vector<Tensor>> LoweredGraph::RunAs(const te::Program& program, const std::vector<Tensor>& inputs,
                                                        const te::InterpretOptions& options) const {
  std::map<ValueId, Tensor> known;
  for (size_t i = 0; i < graph_->inputs().size(); ++i) known[graph_->inputs()[i]] = inputs[i];
  ASSIGN_OR_RETURN(const std::vector<Tensor> results, te::Interpret(program, ArgumentsOf(program, inputs), options));
  for (size_t i = 0; i < computed_.size(); ++i) known[computed_[i]] = results[i];
  std::vector<Tensor> outputs;
  for (ValueId id : graph_->outputs()) {
    const std::optional<Tensor>& constant = graph_->value(id).constant;
    outputs.push_back(constant.has_value() ? *constant : known[id]);
  }
  return outputs;
}

absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const te::InterpretOptions& options) {
  ASSIGN_OR_RETURN(const LoweredGraph lowered, LoweredGraph::Make(graph));
  return lowered.Run(inputs, options);
}

}  // namespace fusion::ecg
