// Applies all rules at once to random graphs with shared values and broadcasting: the engine keeps what the graphs
// compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "compiler/analysis/interpret.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/rewrite/match.h"
#include "compiler/rewrite/rewrite.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/rule_index.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr int kGraphs = 600;
constexpr double kSane = 1e9;  // above it the rounding of f64 becomes visible

using Random = std::mt19937;

// All values are f64, so that reordering alone explains no visible difference.
ecg::Graph MakeGraph(Random* random) {
  const std::vector<std::string> unary = {"Neg", "Abs", "Exp", "Log", "Sqrt", "Reciprocal", "Relu", "Sigmoid", "Tanh"};
  const std::vector<std::string> binary = {"Add", "Add", "Mul", "Mul", "Mul", "Sub", "Div", "Max", "Min", "MatMul"};
  const std::vector<Shape> shapes = {{3, 3}, {3, 3}, {3}, {3, 1}, {}};
  const auto draw = [&](const Shape& shape) {
    Tensor tensor(DType::kF64, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      tensor.SetDouble(i, std::uniform_real_distribution<double>(0.3, 1.7)(*random));
    }
    return tensor;
  };
  ecg::Graph graph;
  std::vector<ecg::ValueId> values;
  for (int i = 0; i < 4; ++i) values.push_back(graph.AddInput("x", {DType::kF64, shapes[(*random)() % shapes.size()]}));
  for (int i = 0; i < 3; ++i) values.push_back(graph.AddConstant("c", draw(shapes[(*random)() % shapes.size()])));
  values.push_back(graph.AddConstant("one", Tensor::From<double>(DType::kF64, {}, {1})));
  for (int made = 0; made < 14;) {
    ecg::Node node;
    const bool is_unary = (*random)() % 3 == 0;
    node.op = is_unary ? unary[(*random)() % unary.size()] : binary[(*random)() % binary.size()];
    for (int i = 0; i < (is_unary ? 1 : 2); ++i) {
      // Recent values are drawn more often, which gives deep graphs with some sharing.
      const size_t back =
          (*random)() % 2 == 0 ? (*random)() % std::min<size_t>(values.size(), 4) : (*random)() % values.size();
      node.inputs.push_back(values[values.size() - 1 - back]);
    }
    const auto types = ops::InferTypes(ops::MakeContext(graph, node), 1);
    if (!types.ok()) continue;
    values.push_back(graph.node(graph.AddNode(node.op, "", node.inputs, {}, *types)).outputs[0]);
    ++made;
  }
  graph.AddOutput(values.back(), "y");
  if ((*random)() % 2 == 0) graph.AddOutput(values[values.size() - 4], "z");
  return graph;
}

TEST(RandomGraphs, RuleIndexHidesNoMatch) {
  std::vector<const Rule*> rules;
  ASSERT_TRUE(BuiltInRules().ok()) << BuiltInRules().status();
  for (const Rule& rule : *BuiltInRules()) rules.push_back(&rule);
  const RuleIndex index(rules);
  Random random(6);
  int matches = 0, possible_rules = 0, nodes = 0;
  for (int n = 0; n < kGraphs; ++n) {
    const ecg::Graph source = MakeGraph(&random);
    const WorkGraph graph(source);
    for (ecg::NodeId id = 0; id < graph.num_nodes(); ++id) {
      const std::vector<const Rule*> possible = index.Possible(graph, graph.node(id));
      possible_rules += static_cast<int>(possible.size());
      ++nodes;
      for (const Rule* rule : rules) {
        for (const bool reassociate : {false, true}) {
          bool matched = false;
          FindMatches(graph, *rule, id, reassociate, [&](const Match&) {
            matched = true;
            return false;
          });
          matches += matched ? 1 : 0;
          EXPECT_TRUE(!matched || std::find(possible.begin(), possible.end(), rule) != possible.end())
              << rule->id << " at node " << id << " of\n"
              << ecg::Print(source);
        }
      }
    }
  }
  EXPECT_GT(matches, 1000);
  EXPECT_LT(possible_rules, nodes * static_cast<int>(rules.size()) / 10);  // and the index rules most of them out
}

TEST(RandomGraphs, KeepTheirValue) {
  Random random(5);
  std::map<std::string, int> fired;
  int compared = 0;
  for (int n = 0; n < kGraphs; ++n) {
    const ecg::Graph graph = MakeGraph(&random);
    const auto rewritten = Rewrite(graph, {});
    ASSERT_TRUE(rewritten.ok()) << rewritten.status() << "\n" << ecg::Print(graph);
    std::string account;
    for (const Firing& firing : rewritten->firings) {
      ++fired[firing.rule];
      account += firing.rule + " at " + firing.where + "\n";
    }
    // Every intermediate result is an output, to leave out graphs that overflow or leave a domain on the way.
    ecg::Graph open = graph;
    for (const ecg::Node& node : graph.nodes()) {
      if (!open.IsOutput(node.outputs[0])) open.AddOutput(node.outputs[0], "t");
    }
    std::vector<Tensor> inputs;
    for (ecg::ValueId id : graph.inputs()) {
      Tensor tensor(DType::kF64, graph.value(id).type.shape);
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        tensor.SetDouble(i, std::uniform_real_distribution<double>(0.3, 1.7)(random));
      }
      inputs.push_back(tensor);
    }
    const auto wanted = ecg::Interpret(open, inputs), got = ecg::Interpret(rewritten->graph, inputs);
    ASSERT_TRUE(wanted.ok()) << wanted.status();
    ASSERT_TRUE(got.ok()) << got.status() << "\n" << ecg::Print(rewritten->graph);
    bool sane = true;
    for (const Tensor& tensor : *wanted) {
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const double x = std::abs(tensor.GetDouble(i));
        sane = sane && std::isfinite(x) && x < kSane && (x == 0 || x > 1 / kSane);
      }
    }
    if (!sane) continue;
    ++compared;
    for (size_t k = 0; k < got->size(); ++k) {
      for (int64_t i = 0; i < got->at(k).num_elements(); ++i) {
        const double a = wanted->at(k).GetDouble(i), b = got->at(k).GetDouble(i);
        ASSERT_NEAR(a, b, 1e-6 * (1 + std::abs(a))) << ecg::Print(graph) << account << ecg::Print(rewritten->graph);
      }
    }
  }
  EXPECT_GT(compared, kGraphs / 4);
  EXPECT_GT(fired.size(), 25u);
}

// §4.2: "repeated till there are no additional matching rules".
TEST(RandomGraphs, AreRewrittenToTheEnd) {
  Random random(6);
  for (int n = 0; n < kGraphs / 3; ++n) {
    const ecg::Graph graph = MakeGraph(&random);
    for (const MathLevel math : {MathLevel::kFast, MathLevel::kStrict, MathLevel::kRelaxed}) {
      const auto once = Rewrite(graph, {.math = math, .disabled = {}});
      ASSERT_TRUE(once.ok()) << once.status() << "\n" << ecg::Print(graph);
      const auto twice = Rewrite(once->graph, {.math = math, .disabled = {}});
      ASSERT_TRUE(twice.ok()) << twice.status();
      ASSERT_TRUE(twice->firings.empty()) << twice->firings[0].rule << " fires in\n" << ecg::Print(once->graph);
    }
  }
}

TEST(RandomGraphs, StrictFiresExactRulesAlone) {
  const auto& rules = BuiltInRules();
  ASSERT_TRUE(rules.ok()) << rules.status();
  std::map<std::string, MathClass> class_of;
  for (const Rule& rule : *rules) class_of[rule.id] = rule.math_class;
  Random random(7);
  int fired = 0;
  for (int n = 0; n < kGraphs / 3; ++n) {
    const auto result = Rewrite(MakeGraph(&random), {.math = MathLevel::kStrict, .disabled = {}});
    ASSERT_TRUE(result.ok()) << result.status();
    for (const Firing& firing : result->firings) {
      EXPECT_EQ(class_of.at(firing.rule), MathClass::kExact) << firing.rule;
      ++fired;
    }
  }
  EXPECT_GT(fired, 20);
}

}  // namespace
}  // namespace fusion::rewrite
