#include "compiler/plan/planners/graph_turbo/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/order.h"
#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

TEST(Binding, PlainBindingIsGreedyFromTheOutermostDimension) {
  EXPECT_EQ(PlainBinding(WholeRegion({8, 64, 7, 7}), 8), (Factors{8, 1, 1, 1}));
  EXPECT_EQ(PlainBinding(WholeRegion({2, 64, 7, 7}), 8), (Factors{2, 4, 1, 1}));
  EXPECT_EQ(PlainBinding(WholeRegion({1, 12, 128, 128}), 8), (Factors{1, 4, 2, 1}));
  EXPECT_EQ(PlainBinding(WholeRegion({3, 5}), 8), (Factors{1, 1}));
  EXPECT_EQ(PlainBinding(WholeRegion({16}), 9), (Factors{8}));
  EXPECT_EQ(PlainBinding(WholeRegion({16}), 1), (Factors{1}));
}

// Sub-graphs of single operators that are not split.
struct Case {
  explicit Case(const std::string& text) : graph(OpGraphFromText(text)) {
    for (int op = 0; op < static_cast<int>(graph.ops.size()); ++op)
      sub_graphs.push_back({SubGraph{{op}}, std::nullopt});
    instances = MakeInstances(graph, sub_graphs);
  }
  std::optional<Factors> Infer(int i, const Factors& binding, int maker) const {
    return InferBinding(graph, sub_graphs, instances, i, binding, graph.ops[maker].outputs[0], maker);
  }
  OpGraph graph;
  std::vector<GroupedSubGraph> sub_graphs;
  InstanceGraph instances;
};

TEST(Binding, PropagatesAlongMatchingDimensions) {
  const Case conv(R"(graph g(%x: f32[2, 4, 8, 8]) {
    %w: f32[8, 4, 3, 3] = const #0000000000000000
    %a: f32[2, 4, 8, 8] = Relu(%x)
    %b: f32[2, 8, 8, 8] = Conv(%a, %w) {pads = ints[1, 1, 1, 1]}
    return %b
  })");
  // The channels of a convolution's result read all channels: that dimension matches none.
  EXPECT_EQ(conv.Infer(1, {2, 4, 1, 1}, 0), (Factors{2, 1, 1, 1}));
  EXPECT_EQ(conv.Infer(1, {1, 1, 8, 1}, 0), (Factors{1, 1, 8, 1}));
  EXPECT_EQ(conv.Infer(1, {1, 8, 1, 1}, 0), std::nullopt);
  const Case transpose(R"(graph g(%x: f32[8, 6]) {
    %a: f32[8, 6] = Relu(%x)
    %b: f32[6, 8] = Transpose(%a) {perm = ints[1, 0]}
    return %b
  })");
  EXPECT_EQ(transpose.Infer(1, {2, 4}, 0), (Factors{4, 2}));
}

TEST(Binding, AFactorThatDoesNotDivideIsInvalid) {
  // Four parts of eight rows read rows of four at a stride; of six rows no four equal parts can be made.
  const Case strided(R"(graph g(%x: f32[1, 1, 6, 1]) {
    %a: f32[1, 1, 6, 1] = Relu(%x)
    %b: f32[1, 1, 4, 1] = MaxPool(%a) {kernel_shape = ints[3, 1]}
    return %b
  })");
  EXPECT_EQ(strided.Infer(1, {1, 1, 4, 1}, 0), std::nullopt);
  EXPECT_EQ(strided.Infer(1, {1, 1, 2, 1}, 0), (Factors{1, 1, 2, 1}));
}

TEST(Binding, ConsumersThatDisagreePutATensorIntoTheGb) {
  const Case both(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Relu(%x)
    %b: f32[8, 8] = Transpose(%a) {perm = ints[1, 0]}
    %c: f32[8, 8] = Exp(%a)
    return %b, %c
  })");
  const std::vector<Binding> bindings =
      InferBindings(both.graph, both.sub_graphs, both.instances, BreadthFirstOrder(both.instances), 8);
  EXPECT_EQ(bindings[0].scope, BufferScope::kGlobal);
  EXPECT_EQ(bindings[1].scope, BufferScope::kLocal);
  EXPECT_EQ(bindings[1].factors, (Factors{8, 1}));
  EXPECT_EQ(bindings[2].factors, (Factors{8, 1}));
  // Figure 9, left: each reader copies it from the GB.
  const std::vector<Movement> movements = InsertMovements(both.graph, both.sub_graphs, both.instances, bindings);
  ASSERT_EQ(movements.size(), 2);
  EXPECT_EQ(movements[0].kind, MovementKind::kCopy);
  EXPECT_EQ(movements[0].consumer, 1);
  EXPECT_EQ(movements[1].consumer, 2);
}

TEST(Binding, AgreementStaysInTheLbs) {
  const Case one(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Relu(%x)
    %b: f32[8, 8] = Transpose(%a) {perm = ints[1, 0]}
    return %b
  })");
  const std::vector<Binding> bindings =
      InferBindings(one.graph, one.sub_graphs, one.instances, BreadthFirstOrder(one.instances), 8);
  EXPECT_EQ(bindings[0].scope, BufferScope::kLocal);
  EXPECT_EQ(bindings[0].factors, (Factors{1, 8}));
  EXPECT_TRUE(InsertMovements(one.graph, one.sub_graphs, one.instances, bindings).empty());
}

TEST(Binding, ADifferentBindingIsRedistributed) {
  const Case one(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Relu(%x)
    %b: f32[8, 8] = Transpose(%a) {perm = ints[1, 0]}
    return %b
  })");
  // Figure 9, right.
  const std::vector<Movement> movements = InsertMovements(
      one.graph, one.sub_graphs, one.instances, {{{8, 1}, BufferScope::kLocal}, {{8, 1}, BufferScope::kLocal}});
  ASSERT_EQ(movements.size(), 1);
  EXPECT_EQ(movements[0].kind, MovementKind::kRedistribute);
  EXPECT_EQ(movements[0].maker, 0);
}

// Figure 8: an instance that reads the outputs of two has a concatenation in front.
TEST(Binding, SeveralMakersAreConcatenated) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const Grouping grouping = GroupSubGraphs(graph, {3000, 1.25});
  const InstanceGraph instances = MakeInstances(graph, grouping.sub_graphs);
  const auto bindings = InferBindings(graph, grouping.sub_graphs, instances, DepthFirstOrder(instances), 8);
  int concatenations = 0;
  for (const Movement& movement : InsertMovements(graph, grouping.sub_graphs, instances, bindings)) {
    concatenations += movement.kind == MovementKind::kConcatenate;
  }
  EXPECT_EQ(concatenations, 4 + 2 + 1);
}

}  // namespace
}  // namespace fusion::graph_turbo
