// For tests: the outputs of a graph by the interpreter, whichever passes it went through: an output may be a constant
// or an input.
#ifndef FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_
#define FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/interpreter.h"

namespace fusion::rewrite {

absl::StatusOr<std::vector<Tensor>> ComputeGraph(const ecg::Graph& graph, const std::vector<Tensor>& inputs,
                                                 const te::InterpretOptions& options = {});

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_
