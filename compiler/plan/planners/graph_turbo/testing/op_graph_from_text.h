// Graphs of operators for tests, from a graph's text.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_TESTING_OP_GRAPH_FROM_TEXT_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_TESTING_OP_GRAPH_FROM_TEXT_H_

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "compiler/plan/planners/graph_turbo/op_graph.h"

namespace fusion::graph_turbo {

// Each node is an operator.
inline OpGraph OpGraphFromText(const std::string& text, int64_t float_bytes = 4) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  std::vector<std::vector<ecg::NodeId>> nodes;
  for (int id = 0; id < static_cast<int>(graph->nodes().size()); ++id) nodes.push_back({id});
  auto made = MakeOpGraph(*graph, nodes, {float_bytes});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *std::move(made) : OpGraph();
}

// Four stages of one 1×1 convolution each, as in Fig. 3a: a stage halves the bytes of an image of 256 elements, which
// stays so in the first. `images` of them.
inline std::string FourStages(int images) {
  const std::string n = std::to_string(images);
  return "graph stages(%x: f32[" + n + R"(, 4, 8, 8]) {
    %w1: f32[4, 4, 1, 1] = const #0000000000000000
    %w2: f32[8, 4, 1, 1] = const #0000000000000000
    %w3: f32[16, 8, 1, 1] = const #0000000000000000
    %w4: f32[32, 16, 1, 1] = const #0000000000000000
    %a: f32[)" +
         n + R"(, 4, 8, 8] = Conv(%x, %w1)
    %b: f32[)" +
         n + R"(, 8, 4, 4] = Conv(%a, %w2) {strides = ints[2, 2]}
    %c: f32[)" +
         n + R"(, 16, 2, 2] = Conv(%b, %w3) {strides = ints[2, 2]}
    %d: f32[)" +
         n + R"(, 32, 1, 1] = Conv(%c, %w4) {strides = ints[2, 2]}
    return %d
  })";
}

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_TESTING_OP_GRAPH_FROM_TEXT_H_
