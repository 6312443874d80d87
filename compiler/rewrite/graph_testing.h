// For tests: the outputs of a graph by the interpreter.
#ifndef FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_
#define FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::rewrite {

absl::StatusOr<std::vector<Tensor>> ComputeGraph(const ecg::Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_GRAPH_TESTING_H_
