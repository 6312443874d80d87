// The basic operators of a graph that a test writes as text.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TESTING_OPERATORS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TESTING_OPERATORS_H_

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "compiler/cost/typical_core.h"
#include "compiler/plan/fusion_block.h"
#include "compiler/plan/planners/power_fusion/basic_operators.h"
#include "compiler/simplify/passes.h"

namespace fusion::power_fusion {

struct Operators {
  explicit Operators(const std::string& text, const DeviceModel& on = TypicalCore()) : device(on) {
    auto parsed = ecg::Parse(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    graph = simplify::OpenComposites(parsed.value());
    auto made = BasicOperatorsOf(graph, device, {});
    EXPECT_TRUE(made.ok()) << made.status();
    basic = std::move(made).value();
    nodes.resize(graph.nodes().size());
    std::iota(nodes.begin(), nodes.end(), 0);
    const std::vector<ecg::ValueId> live = LiveOut(graph, FusionBlock(nodes));
    results = {live.begin(), live.end()};
  }
  // The operator that makes the value of this name.
  const BasicOperator& Of(const std::string& name) const {
    for (const BasicOperator& op : basic) {
      for (const ecg::ValueId value : op.results) {
        if (graph.value(value).name == name) return op;
      }
    }
    ADD_FAILURE() << "no operator makes %" << name;
    return basic.front();
  }

  DeviceModel device;
  ecg::Graph graph;
  std::vector<BasicOperator> basic;  // by node
  std::vector<ecg::NodeId> nodes;    // all
  std::set<ecg::ValueId> results;    // of the graph
};

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_TESTING_OPERATORS_H_
