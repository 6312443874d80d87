// Valid ONNX models of random operators: control flow and shapes that depend on data, which only import knows, and
// everything that the registry has.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_MODEL_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_MODEL_H_

#include <cstdint>
#include <map>
#include <string>

#include "compiler/ecg/graph.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/graphs/limits.h"

namespace fusion::fuzz {

struct DrawnModel {
  onnx::ModelProto model;
  ecg::Graph graph;  // the graph that import makes
  // Counts, by reason (summary.h), operators that fit their operands but that import refuses within the model.
  std::map<std::string, int> left_out;
};

// Runs each node with constant operands as soon as it is drawn, so that the actual extents are known, and imports the
// model with it. Returns the same model for the same seed and registry.
DrawnModel RandomModel(uint64_t seed, const GraphLimits& limits = {});

// Counts how often each operator occurs, also in subgraphs. The operators of the registry and of control flow are keys.
void CountOperators(const onnx::GraphProto& graph, std::map<std::string, int>* counts);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_MODEL_H_
