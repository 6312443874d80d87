// Valid graphs of random operators, drawn from the operator registry alone: inputs, attributes and roles as their OpDef
// declares them, whatever else an operator asks for by trying until its `infer` accepts.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/limits.h"

namespace fusion::fuzz {

// The same graph for the same seed and registry. Constants of more than 16 elements are filled with 8 bytes
// (graph.h, Print), so that the graph survives its text; Materialise (values.h) puts values in their place.
// Each output is the result of a node and occurs once.
ecg::Graph RandomGraph(uint64_t seed, const GraphLimits& limits = {});

// How often each operator occurs; all of the registry are keys, even where they do not.
void CountOperators(const ecg::Graph& graph, std::map<std::string, int>* counts);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_GRAPH_H_
