// Valid graphs of random operators, drawn from the operator registry only. Inputs, attributes and roles follow the
// operator's OpDef; everything else that an operator requires is found by trying until its `infer` accepts.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/limits.h"

namespace fusion::fuzz {

// Returns the same graph for the same seed and registry. Constants of more than 16 elements are filled with 8 bytes
// (graph.h, Print), so that the text form keeps the whole graph; Materialise (values.h) replaces them by values. Each
// output is the result of a node and occurs once.
ecg::Graph RandomGraph(uint64_t seed, const GraphLimits& limits = {});

// Counts how often each operator occurs. All operators of the registry are keys, even if they do not occur.
void CountOperators(const ecg::Graph& graph, std::map<std::string, int>* counts);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_
