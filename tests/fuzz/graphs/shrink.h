// Smaller graphs that fail as well.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_
#define FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_

#include <functional>
#include <vector>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/check.h"

namespace fusion::fuzz {

// fails(candidates) says of each whether it fails. Outputs are left out, values become inputs, and what nothing reads
// any more disappears, until no such step gives a graph that fails.
ecg::Graph Shrink(const ecg::Graph& graph,
                  const std::function<std::vector<bool>(const std::vector<ecg::Graph>&)>& fails);

// The same for a model: nodes are left out, what they computed becomes inputs, an If becomes one of its branches.
Case ShrinkModel(const Case& failed, const std::function<std::vector<bool>(const std::vector<Case>&)>& fails);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_SHRINK_H_
