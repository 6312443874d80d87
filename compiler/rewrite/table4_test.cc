// The rows of DNNFusion's Table 4, each as a graph, and the operators that remain after rewriting. The first row as
// printed is not an identity; the text and figure 2 (a) show what is meant. Most rows need --math relaxed, because
// operands of a graph may be of any magnitude.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/rewrite/rewrite.h"

namespace fusion::rewrite {
namespace {

struct Row {
  const char* name;
  const char* body;  // nodes from %a, %b, %c: f32[4, 8] and %i: u32[4, 8] to %y
  std::vector<std::string> ops;
  double flops_saved;  // a lower limit
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Table4 : public ::testing::TestWithParam<Row> {};

TEST_P(Table4, Rewrites) {
  const std::string text = std::string("graph g(%a: f32[4, 8], %b: f32[4, 8], %c: f32[4, 8], %i: u32[4, 8]) {\n") +
                           "  %last: i64[1] = const {1}\n  %three: u32[] = const {3}\n" + GetParam().body +
                           "  return %y\n}";
  const auto graph = ecg::Parse(text);
  ASSERT_TRUE(graph.ok()) << graph.status() << text;
  ASSERT_TRUE(ecg::Verify(*graph).ok()) << ecg::Verify(*graph);
  const auto result = Rewrite(*graph, {.math = MathLevel::kRelaxed, .disabled = {}});
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<std::string> ops;
  for (const ecg::Node& node : result->graph.nodes()) ops.push_back(node.op);
  EXPECT_EQ(ops, GetParam().ops) << ecg::Print(result->graph);
  EXPECT_FALSE(result->firings.empty());
  double saved = 0;
  for (const Firing& firing : result->firings) saved += firing.flops_saved;
  EXPECT_GE(saved, GetParam().flops_saved);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, Table4,
    ::testing::Values(
        Row{"recip",  // Recip(A) is shared before and after: only a load is saved
            "  %r: f32[4, 8] = Reciprocal(%a)\n  %s: f32[4, 8] = Mul(%r, %b)\n  %y: f32[4, 8] = Mul(%r, %s)\n",
            {"Reciprocal", "Mul", "Mul"},
            0},
        Row{"sqrt",
            "  %r: f32[4, 8] = Sqrt(%b)\n  %s: f32[4, 8] = Mul(%a, %r)\n  %t: f32[4, 8] = Mul(%r, %c)\n"
            "  %y: f32[4, 8] = Mul(%s, %t)\n",
            {"Mul", "Mul"},
            64},
        Row{"abs",
            "  %r: f32[4, 8] = Abs(%a)\n  %s: f32[4, 8] = Abs(%c)\n  %t: f32[4, 8] = Mul(%r, %b)\n"
            "  %y: f32[4, 8] = Mul(%t, %s)\n",
            {"Mul", "Abs", "Mul"},
            32},
        Row{"small_square",
            "  %r: f32[4, 1] = ReduceSum(%b, %last)\n  %s: f32[4, 8] = Mul(%a, %r)\n  %t: f32[4, 8] = Mul(%r, %c)\n"
            "  %y: f32[4, 8] = Mul(%s, %t)\n",
            {"ReduceSum", "Mul", "Mul", "Mul"},
            28},
        Row{"factor",
            "  %s: f32[4, 8] = Mul(%a, %c)\n  %t: f32[4, 8] = Mul(%a, %b)\n  %y: f32[4, 8] = Add(%s, %t)\n",
            {"Add", "Mul"},
            32},
        Row{"factor_self", "  %s: f32[4, 8] = Mul(%a, %b)\n  %y: f32[4, 8] = Add(%a, %s)\n", {"Add", "Mul"}, 0},
        Row{"square_of_sum",
            "  %s: f32[4, 8] = Add(%a, %b)\n  %q: f32[4, 8] = Mul(%s, %s)\n  %t: f32[4, 8] = Mul(%s, %c)\n"
            "  %y: f32[4, 8] = Sub(%q, %t)\n",
            {"Add", "Sub", "Mul"},
            32},
        Row{"sum_of_shifts",
            "  %s: u32[4, 8] = BitShift(%i, %three) {direction = \"LEFT\"}\n"
            "  %y: u32[4] = ReduceSum(%s, %last) {keepdims = 0}\n",
            {"ReduceSum", "BitShift"},
            28},
        Row{"product_of_exponentials",
            "  %s: f32[4, 8] = Exp(%a)\n  %y: f32[4] = ReduceProd(%s, %last) {keepdims = 0}\n",
            {"ReduceSum", "Exp"},
            28}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fusion::rewrite
