// Finds smaller graphs that fail in the same way.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_
#define FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_

#include <functional>
#include <vector>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/check.h"

namespace fusion::fuzz {

// fails(candidates) returns for each candidate whether it fails. Shrink leaves out outputs, turns values into inputs
// and removes what nothing reads any more, until no such step gives a graph that fails.
ecg::Graph Shrink(const ecg::Graph& graph,
                  const std::function<std::vector<bool>(const std::vector<ecg::Graph>&)>& fails);

// Does the same for a model: leaves out nodes, turns their results into inputs, and replaces an If by one of its
// branches.
Case ShrinkModel(const Case& failed, const std::function<std::vector<bool>(const std::vector<Case>&)>& fails);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_
