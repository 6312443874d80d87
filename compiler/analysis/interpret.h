// Runs a whole graph with the tensor expression interpreter. Every compiled form of the graph is compared with the
// result.
#ifndef FUSION_COMPILER_ANALYSIS_INTERPRET_H_
#define FUSION_COMPILER_ANALYSIS_INTERPRET_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/interpreter/interpreter.h"

namespace fusion::ecg {

// `inputs` are parallel to graph.inputs(), the result to graph.outputs(). Verifies the graph first. An output may be a
// constant or an input, because passes may leave such outputs.
absl::StatusOr<std::vector<Tensor>> Interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                              const te::InterpretOptions& options = {});

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_ANALYSIS_INTERPRET_H_
