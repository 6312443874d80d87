// Valid ONNX models of random operators: what only import knows, control flow and shapes that depend on data, beside
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
  ecg::Graph graph;  // what import makes of it
  // Operators that fit their operands, but that import refuses in the midst of the model, by reason (summary.h).
  std::map<std::string, int> left_out;
};

// Each node is run with constant operands as soon as it is drawn, so that the actual extents are known, and the model
// with it is imported. The same model for the same seed and registry.
DrawnModel RandomModel(uint64_t seed, const GraphLimits& limits = {});

// How often each operator occurs, in subgraphs too; those of the registry and of control flow are keys.
void CountOperators(const onnx::GraphProto& graph, std::map<std::string, int>* counts);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_MODEL_H_
