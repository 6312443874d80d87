#include "compiler/plan/planners/graph_turbo/instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

// Figure 6: fifteen instances; of the edges between all of them, two remain for each instance below the first stage.
TEST(Instances, OfFigure6) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const Grouping grouping = GroupSubGraphs(graph, {3000, 1.25});
  const InstanceGraph instances = MakeInstances(graph, grouping.sub_graphs);
  EXPECT_EQ(instances.instances.size(), 8 + 4 + 2 + 1);
  EXPECT_EQ(instances.inherited_edges, 8 * 4 + 4 * 2 + 2);
  EXPECT_EQ(instances.edges, 8 + 4 + 2);
  EXPECT_THAT(instances.first, ElementsAre(0, 8, 12, 14));
  EXPECT_THAT(instances.instances[9].producers, ElementsAre(2, 3));
  EXPECT_THAT(instances.instances[9].consumers, ElementsAre(12));
  EXPECT_EQ(instances.instances[9].outputs[0].ranges[0], (Range{2, 4}));
}

TEST(Instances, AHaloIsAnEdge) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[1, 4, 16, 4]) {
    %w: f32[4, 4, 1, 1] = const #0000000000000000
    %v: f32[4, 4, 3, 3] = const #0000000000000000
    %a: f32[1, 4, 16, 4] = Conv(%x, %w)
    %b: f32[1, 4, 16, 4] = Conv(%a, %v) {pads = ints[1, 1, 1, 1]}
    return %b
  })");
  Split rows;
  rows.f = 4;
  rows.factors = {1, 1, 4, 1};
  const std::vector<GroupedSubGraph> sub_graphs = {{SubGraph{{0}}, rows}, {SubGraph{{1}}, rows}};
  const InstanceGraph instances = MakeInstances(graph, sub_graphs);
  EXPECT_EQ(instances.inherited_edges, 16);
  EXPECT_THAT(instances.instances[4].producers, ElementsAre(0, 1));
  EXPECT_THAT(instances.instances[5].producers, ElementsAre(0, 1, 2));
  EXPECT_THAT(instances.instances[7].producers, ElementsAre(2, 3));
  EXPECT_EQ(instances.edges, 2 + 3 + 3 + 2);
  const int a = graph.ops[0].outputs[0];
  EXPECT_THAT(instances.instances[5].makers.at(a), ElementsAre(0, 1, 2));
}

// Each element that an instance reads is made by exactly one of its makers, also where pieces are uneven.
TEST(Instances, MakersCoverWhatIsRead) {
  const OpGraph graph = OpGraphFromText(R"(graph g(%x: f32[2, 4, 13, 6]) {
    %v: f32[4, 4, 3, 3] = const #0000000000000000
    %a: f32[2, 4, 13, 6] = Conv(%x, %v) {pads = ints[1, 1, 1, 1]}
    %b: f32[2, 4, 7, 3] = Conv(%a, %v) {pads = ints[1, 1, 1, 1], strides = ints[2, 2]}
    %c: f32[2, 4, 7, 3] = Conv(%b, %v) {pads = ints[1, 1, 1, 1]}
    return %c
  })");
  const auto split = [](Factors factors) {
    Split made;
    made.f = Pieces(factors);
    made.factors = std::move(factors);
    return made;
  };
  const std::vector<GroupedSubGraph> sub_graphs = {
      {SubGraph{{0}}, split({2, 1, 4, 1})}, {SubGraph{{1}}, split({1, 2, 2, 3})}, {SubGraph{{2}}, split({2, 1, 7, 2})}};
  const InstanceGraph instances = MakeInstances(graph, sub_graphs);
  int checked = 0;
  for (const Instance& instance : instances.instances) {
    for (const auto& [tensor, makers] : instance.makers) {
      const Region& read = instance.footprint.regions.at(tensor);
      int64_t made = 0;
      for (const int maker : makers) {
        int64_t shared = 1;
        for (size_t d = 0; d < read.ranges.size(); ++d) {
          const Range& piece = instances.instances[maker].outputs[0].ranges[d];
          shared *= std::min(piece.end, read.ranges[d].end) - std::max(piece.begin, read.ranges[d].begin);
        }
        EXPECT_GT(shared, 0);
        made += shared;
      }
      EXPECT_EQ(made, read.elements());
      ++checked;
    }
  }
  EXPECT_EQ(checked, 12 + 28);
}

}  // namespace
}  // namespace fusion::graph_turbo
