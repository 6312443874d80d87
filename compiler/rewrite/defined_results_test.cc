// Graphs whose results rewriting once changed: the default keeps every defined result, whatever the operands.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "compiler/analysis/interpret.h"
#include "compiler/rewrite/rewrite.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  const char* name;
  const char* body;                         // nodes from the inputs to %y
  std::vector<std::vector<double>> inputs;  // %a, %b: vectors
  double wanted;                            // every element of %y
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

absl::StatusOr<Tensor> Computed(const ecg::Graph& graph, const Case& one) {
  std::vector<Tensor> inputs;
  for (const std::vector<double>& numbers : one.inputs) {
    inputs.push_back(Tensor::From<double>(DType::kF32, {static_cast<int64_t>(numbers.size())}, numbers));
  }
  ASSIGN_OR_RETURN(std::vector<Tensor> outputs, ecg::Interpret(graph, inputs));
  return outputs[0];
}

class DefinedResults : public ::testing::TestWithParam<Case> {};

TEST_P(DefinedResults, StayByDefault) {
  const Case& one = GetParam();
  std::string text = "graph g(";
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    text += std::string(i == 0 ? "" : ", ") + "%" + static_cast<char>('a' + i) + ": f32[" +
            std::to_string(one.inputs[i].size()) + "]";
  }
  text += std::string(") {\n") + one.body + "  return %y\n}";
  const auto graph = ecg::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status() << text;
  for (const MathLevel math : {MathLevel::kFast, MathLevel::kStrict}) {
    const auto rewritten = Rewrite(*graph, {.math = math, .disabled = {}});
    ASSERT_TRUE(rewritten.ok()) << rewritten.status();
    const auto result = Computed(rewritten->graph, one);
    ASSERT_TRUE(result.ok()) << result.status();
    for (int64_t i = 0; i < result->num_elements(); ++i) {
      const double got = result->GetDouble(i);
      if (std::isnan(one.wanted) || std::isinf(one.wanted)) {
        EXPECT_TRUE(got == one.wanted || (std::isnan(got) && std::isnan(one.wanted)))
            << got << ecg::Print(rewritten->graph);
      } else {
        EXPECT_NEAR(got, one.wanted, 1e-5 * std::abs(one.wanted)) << ecg::Print(rewritten->graph);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, DefinedResults,
    ::testing::Values(
        Case{"max_of_reciprocals", "  %r: f32[2] = Reciprocal(%a)\n  %y: f32[1] = ReduceMax(%r)\n", {{-1, 2}}, 0.5},
        Case{"min_of_reciprocals", "  %r: f32[2] = Reciprocal(%a)\n  %y: f32[1] = ReduceMin(%r)\n", {{1, -2}}, -0.5},
        Case{"sum_of_logarithms",
             "  %l: f32[64] = Log(%a)\n  %y: f32[1] = ReduceSum(%l)\n",
             {std::vector<double>(64, 0.1)},
             -147.36544},
        Case{"sum_of_large_logarithms",
             "  %l: f32[64] = Log(%a)\n  %y: f32[1] = ReduceSum(%l)\n",
             {std::vector<double>(64, 10)},
             147.36544},
        Case{"two_logarithms",
             "  %l: f32[1] = Log(%a)\n  %m: f32[1] = Log(%b)\n  %y: f32[1] = Add(%l, %m)\n",
             {{1e-30}, {1e-30}},
             -138.15511},
        Case{"two_large_logarithms",
             "  %l: f32[1] = Log(%a)\n  %m: f32[1] = Log(%b)\n  %y: f32[1] = Add(%l, %m)\n",
             {{1e30}, {1e30}},
             138.15511},
        Case{"difference_of_logarithms",
             "  %l: f32[1] = Log(%a)\n  %m: f32[1] = Log(%b)\n  %y: f32[1] = Sub(%l, %m)\n",
             {{1e30}, {1e-30}},
             138.15511},
        Case{"sum_of_scaled_squares",
             "  %m: f32[8] = Mul(%a, %b)\n  %q: f32[8] = Mul(%m, %m)\n  %y: f32[1] = ReduceSum(%q)\n",
             {std::vector<double>(8, 1e25), {1e-25}},
             8},
        Case{"sum_of_scaled_small_squares",
             "  %m: f32[8] = Mul(%a, %b)\n  %q: f32[8] = Mul(%m, %m)\n  %y: f32[1] = ReduceSum(%q)\n",
             {std::vector<double>(8, 1e-25), {1e25}},
             8},
        Case{"product_of_roots",
             "  %r: f32[1] = Sqrt(%a)\n  %s: f32[1] = Sqrt(%b)\n  %y: f32[1] = Mul(%r, %s)\n",
             {{1e30}, {1e30}},
             1e30},
        Case{"product_of_small_roots",
             "  %r: f32[1] = Sqrt(%a)\n  %s: f32[1] = Sqrt(%b)\n  %y: f32[1] = Mul(%r, %s)\n",
             {{1e-30}, {1e-30}},
             1e-30},
        Case{"quotient_of_roots",
             "  %r: f32[1] = Sqrt(%a)\n  %s: f32[1] = Sqrt(%b)\n  %y: f32[1] = Div(%r, %s)\n",
             {{1e30}, {1e-30}},
             1e30},
        Case{"product_of_exponentials",
             "  %e: f32[1] = Exp(%a)\n  %f: f32[1] = Exp(%b)\n  %y: f32[1] = Mul(%e, %f)\n",
             {{200}, {-200}},
             std::nan("")},
        Case{"common_factor",
             "  %p: f32[1] = Mul(%a, %b)\n  %q: f32[1] = Mul(%a, %c)\n  %y: f32[1] = Add(%p, %q)\n",
             {{1e-30}, {3e38}, {3e38}},
             6e8},
        Case{"common_infinite_factor",
             "  %p: f32[1] = Mul(%a, %b)\n  %q: f32[1] = Mul(%a, %c)\n  %y: f32[1] = Add(%p, %q)\n",
             {{kInf}, {1}, {-0.5}},
             std::nan("")},
        // The operands of a chain stay in place, also those between which a rule finds its pattern.
        Case{"roots_in_a_chain",
             "  %r: f32[1] = Sqrt(%b)\n  %p: f32[1] = Mul(%a, %r)\n  %q: f32[1] = Mul(%r, %c)\n"
             "  %y: f32[1] = Mul(%p, %q)\n",
             {{1e30}, {1e-30}, {1e30}},
             1e30}),
    [](const auto& info) { return std::string(info.param.name); });

// Rules fire where ranges prove their demands: an operand that is positive in every run keeps its rule.
TEST(DefinedResults, RulesFireWhereRangesProveTheirDemands) {
  const auto fired = [](const std::string& body) {
    const auto graph = ecg::Parse("graph g(%a: f32[4, 8], %b: f32[4, 8]) {\n" + body + "  return %y\n}");
    EXPECT_TRUE(graph.ok()) << graph.status() << body;
    std::vector<std::string> rules;
    if (!graph.ok()) return rules;
    const auto result = Rewrite(graph.value(), {}).value();
    for (const Firing& firing : result.firings) rules.push_back(firing.rule);
    return rules;
  };
  using Rules = std::vector<std::string>;
  const std::string root = "  %r: f32[4, 8] = Sqrt(%p)\n  %y: f32[4, 8] = Mul(%r, %r)\n";
  EXPECT_EQ(fired("  %p: f32[4, 8] = Mul(%a, %b)\n" + root), Rules{});
  EXPECT_EQ(fired("  %p: f32[4, 8] = Mul(%a, %a)\n" + root), Rules{"sqrt-square"});
  EXPECT_EQ(fired("  %p: f32[4, 8] = Softmax(%a)\n" + root), Rules{"sqrt-square"});
  EXPECT_EQ(fired("  %p: f32[4, 8] = Exp(%a)\n" + root), Rules{"sqrt-square"});
  EXPECT_EQ(fired("  %p: f32[4, 8] = Softplus(%a)\n" + root), Rules{"sqrt-square"});
  const std::string reciprocal = "  %r: f32[4, 8] = Reciprocal(%p)\n  %y: f32[1, 1] = ReduceMax(%r)\n";
  const std::string e = "  %e: f32[] = const {0.001}\n";
  EXPECT_EQ(fired(e + "  %q: f32[4, 8] = Relu(%a)\n  %p: f32[4, 8] = Add(%q, %e)\n" + reciprocal),
            (Rules{"max-recip", "reducemin-shift", "min-relu"}));
  EXPECT_EQ(fired("  %p: f32[4, 8] = Relu(%a)\n" + reciprocal), Rules{});
}

}  // namespace
}  // namespace fusion::rewrite
