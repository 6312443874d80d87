#include "compiler/ops/shared/segments.h"

#include <gtest/gtest.h>

#include "compiler/ops/registry/infer_types.h"

namespace fusion::ops {
namespace {

TEST(Segments, PartsStandBehindEachOther) {
  ecg::Graph graph;
  const ecg::ValueId x = graph.AddInput("x", {DType::kF32, {2, 6}}), z = graph.AddInput("z", {DType::kF32, {2, 3}});
  const ecg::ValueId y = AddSegments({{x, 4, 6}, {z, 0, 3}, {x, 0, 1}}, 1, "y", &graph);
  for (const ecg::Node& node : graph.nodes()) {
    const auto types = InferTypes(MakeContext(graph, node), 1);
    ASSERT_TRUE(types.ok()) << types.status();
    EXPECT_EQ((*types)[0], graph.value(node.outputs[0]).type) << node.name;
  }
  EXPECT_EQ(graph.value(y).type.shape, (Shape{2, 6}));
  EXPECT_EQ(graph.nodes().size(), 3u) << "two slices; z is whole";
}

TEST(Segments, AWholeValueNeedsNoNode) {
  ecg::Graph graph;
  const ecg::ValueId x = graph.AddInput("x", {DType::kF32, {2, 6}});
  EXPECT_EQ(AddSegments({{x, 0, 6}}, 1, "y", &graph), x);
  EXPECT_TRUE(graph.nodes().empty());
  const ecg::ValueId part = AddSegments({{x, 1, 2}}, 0, "y", &graph);
  EXPECT_EQ(graph.value(part).type.shape, (Shape{1, 6}));
}

}  // namespace
}  // namespace fusion::ops
