// Runs a whole graph with the tensor expression interpreter. Every compiled form of the graph is compared with the
// result.
#ifndef FUSION_COMPILER_ANALYSIS_INTERPRET_H_
#define FUSION_COMPILER_ANALYSIS_INTERPRET_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/interpreter/interpreter.h"

namespace fusion::ecg {

// A graph that is verified, its loops written out, and lowered once, to run many times.
class LoweredGraph {
 public:
  static absl::StatusOr<LoweredGraph> Make(const Graph& source);

  // As Interpret below. Nothing of the graph is inferred again, so the floating-point mode of the thread concerns the
  // run alone.
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                          const te::InterpretOptions& options = {}) const {
    return RunAs(lowered_.program, inputs, options);
  }

  // The graph as one program of tensor expressions, and the value of one of its constants (nullptr: not known here).
  const te::Program& program() const { return lowered_.program; }
  const Tensor* ConstantOf(te::TensorId tensor) const;

  // As Run, but of what a pass has made of program(): tensors beyond those of program() carry their own constants.
  absl::StatusOr<std::vector<Tensor>> RunAs(const te::Program& program, const std::vector<Tensor>& inputs,
                                            const te::InterpretOptions& options = {}) const;

  // As RunAs, but returns the value of `tensor`, which an expression of `program` computes. Runs nothing behind it.
  absl::StatusOr<Tensor> ValueIn(te::Program program, te::TensorId tensor, const std::vector<Tensor>& inputs) const;

 private:
  LoweredGraph(std::unique_ptr<const Graph> graph, std::vector<ValueId> computed, ops::LoweredFusionBlock lowered)
      : graph_(std::move(graph)), computed_(std::move(computed)), lowered_(std::move(lowered)) {}

  // Returns the interpreter's arguments for `program`, which has this graph's inputs and constants.
  std::vector<Tensor> ArgumentsOf(const te::Program& program, const std::vector<Tensor>& inputs) const;

  std::unique_ptr<const Graph> graph_;  // without loops
  std::vector<ValueId> computed_;       // outputs that a node computes; parallel to the outputs of the fusion block
  ops::LoweredFusionBlock lowered_;
};

// `inputs` are parallel to graph.inputs(), the result to graph.outputs(). Verifies the graph first. An output may be a
// constant or an input, because passes may leave such outputs.
absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const te::InterpretOptions& options = {});

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_INTERPRET_H_
