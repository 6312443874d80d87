#include "compiler/plan/planners/graph_turbo/lowering/sequence.h"

#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

// Each step is preceded by all that it reads, and its sources make all of it.
void ExpectOrdered(const OpGraph& graph, const std::vector<Step>& steps) {
  for (size_t s = 0; s < steps.size(); ++s) {
    const Op& op = graph.ops[steps[s].op];
    const std::vector<Region> needed = op.access.Required(steps[s].outputs).inputs;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] == kNone || graph.tensors[op.inputs[k]].producer == kNone) continue;
      Region made;
      for (const int source : steps[s].sources[k]) {
        ASSERT_LT(source, static_cast<int>(s));
        made.Join(steps[source].outputs[0]);
      }
      Region both = made;
      both.Join(needed[k]);
      EXPECT_EQ(both, made) << s;
    }
  }
}

TEST(Sequence, LayersAsAWhole) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  const std::vector<Step> steps = WholeLayers(graph);
  EXPECT_EQ(steps.size(), 4u);
  ExpectOrdered(graph, steps);
}

TEST(Sequence, OperatorsOfInstancesInTheOrderOfThePlan) {
  const OpGraph graph = OpGraphFromText(FourStages(8));
  Cluster cluster;
  cluster.local_bytes = 300;
  const DepthFirstPlan plan = MakeDepthFirstPlan(graph, cluster);
  ASSERT_GT(plan.instances.instances.size(), 4u);
  const std::vector<Step> steps = SequenceOf(graph, plan);
  ExpectOrdered(graph, steps);
  double results = 0;
  for (const Step& step : steps) {
    if (step.op == 3) results += static_cast<double>(step.outputs[0].elements());
  }
  EXPECT_EQ(results, 8 * 32);
}

}  // namespace
}  // namespace fusion::graph_turbo
