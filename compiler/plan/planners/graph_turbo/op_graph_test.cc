#include "compiler/plan/planners/graph_turbo/op_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

constexpr char kLayer[] = R"(graph g(%x: f32[2, 3, 8, 8]) {
  %w: f32[4, 3, 1, 1] = const #0000000000000000
  %k: f32[4, 1, 1] = const #0000000000000000
  %a: f32[2, 4, 8, 8] = Conv(%x, %w)
  %b: f32[2, 4, 8, 8] = Add(%a, %k)
  %c: f32[2, 4, 8, 8] = Relu(%b)
  %d: f32[2, 4, 8, 8] = Conv(%c, %v)
  return %d
})";

std::string Layer() {
  std::string text = kLayer;
  text.insert(text.find("  %k"), "  %v: f32[4, 4, 1, 1] = const #0000000000000000\n");
  return text;
}

TEST(OpGraph, LayersAreTvmsGroups) {
  const auto graph = ecg::Parse(Layer());
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto layers = LayersOf(*graph);
  ASSERT_TRUE(layers.ok()) << layers.status().message();
  EXPECT_THAT(*layers, ::testing::ElementsAre(::testing::ElementsAre(0, 1, 2), ::testing::ElementsAre(3)));
}

TEST(OpGraph, WeightsAreNoPartOfIt) {
  const auto graph = ecg::Parse(Layer());
  const auto made = MakeOpGraph(*graph, {{0, 1, 2}, {3}}, {2});
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_EQ(made->ops.size(), 2);
  EXPECT_EQ(made->tensors.size(), 3);
  const Tensor& x = made->tensors[0];
  EXPECT_EQ(x.producer, kNone);
  EXPECT_EQ(x.element_bytes, 2);
  EXPECT_THAT(x.consumers, ::testing::ElementsAre(0));
  EXPECT_TRUE(made->tensors[made->ops[1].outputs[0]].model_output);
  EXPECT_FALSE(made->tensors[made->ops[0].outputs[0]].model_output);
  EXPECT_EQ(std::count(made->ops[0].inputs.begin(), made->ops[0].inputs.end(), kNone), 2);
  // 512 results of 3 and 4 products.
  EXPECT_GT(made->ops[1].work, made->ops[0].work * 0.5);
}

}  // namespace
}  // namespace fusion::graph_turbo
