#include "compiler/rewrite/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/rewrite/engine.h"

namespace fusion::rewrite {
namespace {

using ::testing::HasSubstr;

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text).value();
  EXPECT_TRUE(ecg::Verify(graph).ok()) << ecg::Verify(graph);
  return graph;
}

Result Rewritten(const std::string& text, const Options& options = {}) {
  return Rewrite(Parsed(text), options).value();
}

std::vector<std::string> Ops(const ecg::Graph& graph) {
  std::vector<std::string> ops;
  for (const ecg::Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

std::vector<std::string> RuleIds(const Result& result) {
  std::vector<std::string> ids;
  for (const Firing& firing : result.firings) ids.push_back(firing.rule);
  return ids;
}

constexpr char kConvBatchNorm[] = R"(graph g(%x: f32[1, 2, 4, 4]) {
  %w: f32[2, 2, 3, 3] = const #3f8000003f800000
  %s: f32[2] = const {1.0, 2.0}
  %t: f32[2] = const {0.5, -0.5}
  %m: f32[2] = const {0.1, 0.2}
  %v: f32[2] = const {1.0, 4.0}
  %c: f32[1, 2, 2, 2] = Conv(%x, %w)
  %y: f32[1, 2, 2, 2] = BatchNormalization(%c, %s, %t, %m, %v) {epsilon = 0.0}
  return %y
})";

TEST(Rewrite, FoldsBatchNormalizationIntoConvolution) {
  const Result result = Rewritten(kConvBatchNorm);
  EXPECT_EQ(RuleIds(result), std::vector<std::string>{"batch-norm-conv"});
  ASSERT_EQ(result.graph.nodes().size(), 1u) << ecg::Print(result.graph);  // the weights folded at once
  const ecg::Node& conv = result.graph.node(0);
  const Tensor& bias = *result.graph.value(conv.inputs[2]).constant;
  EXPECT_FLOAT_EQ(bias.GetDouble(0), 0.4);
  EXPECT_FLOAT_EQ(bias.GetDouble(1), -0.7);
}

// The table of embeddings is also a right operand. A scale that moved into it would make a second table.
TEST(Rewrite, AScaleDoesNotMoveIntoAReorderedConstantThatOthersRead) {
  const auto scaled = [](bool shared) {
    ecg::Graph graph;
    const ecg::ValueId table = graph.AddConstant("w", Tensor(DType::kF32, {2048, 256}));
    const ecg::ValueId scale = graph.AddConstant("s", Tensor::From<double>(DType::kF32, {}, {0.5}));
    const ecg::ValueId x = graph.AddInput("x", {DType::kF32, {1, 256}}), ids = graph.AddInput("i", {DType::kI64, {2}});
    ecg::Attributes turned;
    turned.Set("perm", std::vector<int64_t>{1, 0});
    const auto add = [&](const char* op, std::vector<ecg::ValueId> inputs, Shape shape, ecg::Attributes attrs = {}) {
      return graph.node(graph.AddNode(op, op, std::move(inputs), std::move(attrs), {{DType::kF32, std::move(shape)}}))
          .outputs[0];
    };
    const ecg::ValueId product = add("MatMul", {x, add("Transpose", {table}, {256, 2048}, turned)}, {1, 2048});
    graph.AddOutput(add("Mul", {product, scale}, {1, 2048}), "y");
    if (shared) graph.AddOutput(add("Gather", {table, ids}, {2, 256}), "z");
    return Rewrite(graph, {}).value();
  };
  EXPECT_EQ(RuleIds(scaled(false)), std::vector<std::string>{"scale-matmul-right"});
  EXPECT_EQ(RuleIds(scaled(true)), std::vector<std::string>{"scale-matmul-left"});
}

// An element of 3e38 would be infinite in every run, also where it meets zeros.
TEST(Rewrite, AConstantIsNotScaledPastItsRange) {
  const auto scaled = [](double largest) {
    ecg::Graph graph;
    const ecg::ValueId w = graph.AddConstant("w", Tensor::From<double>(DType::kF32, {2, 1}, {largest, 1}));
    const ecg::ValueId scale = graph.AddConstant("s", Tensor::From<double>(DType::kF32, {}, {3}));
    const ecg::ValueId x = graph.AddInput("x", {DType::kF32, {9, 2}});
    const auto add = [&](const char* op, std::vector<ecg::ValueId> inputs) {
      return graph.node(graph.AddNode(op, op, std::move(inputs), {}, {{DType::kF32, {9, 1}}})).outputs[0];
    };
    graph.AddOutput(add("Mul", {add("MatMul", {x, w}), scale}), "y");
    return RuleIds(Rewrite(graph, {}).value());
  };
  EXPECT_FALSE(scaled(2).empty());
  EXPECT_THAT(scaled(3e38),
              ::testing::Not(::testing::Contains(::testing::AnyOf("scale-matmul-right", "matmul-scale"))));
}

TEST(Rewrite, StrictKeepsWhatRoundsDifferently) {
  EXPECT_TRUE(Rewritten(kConvBatchNorm, {.math = MathLevel::kStrict, .disabled = {}}).firings.empty());
}

TEST(Rewrite, DisabledRules) {
  EXPECT_TRUE(Rewritten(kConvBatchNorm, {.disabled = {"batch-norm-conv"}}).firings.empty());
  const auto unknown = Rewrite(Parsed(kConvBatchNorm), {.disabled = {"batch-norm-con"}});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("nearest: batch-norm-conv,"));
}

TEST(Rewrite, KeepsAConvolutionThatOthersRead) {
  const Result result = Rewritten(R"(graph g(%x: f32[1, 2, 4, 4]) {
  %w: f32[2, 2, 3, 3] = const #3f8000003f800000
  %s: f32[2] = const {1.0, 2.0}
  %c: f32[1, 2, 2, 2] = Conv(%x, %w)
  %y: f32[1, 2, 2, 2] = BatchNormalization(%c, %s, %s, %s, %s)
  return %y, %c
})");
  EXPECT_TRUE(result.firings.empty()) << ecg::Print(result.graph);
}

TEST(Rewrite, TransposesCancel) {
  const Result result = Rewritten(R"(graph g(%x: f32[2, 3, 4]) {
  %a: f32[4, 2, 3] = Transpose(%x) {perm = ints[2, 0, 1]}
  %b: f32[2, 3, 4] = Transpose(%a) {perm = ints[1, 2, 0]}
  %y: f32[2, 3, 4] = Relu(%b)
  return %y
})",
                                  {.math = MathLevel::kStrict, .disabled = {}});
  EXPECT_EQ(Ops(result.graph), std::vector<std::string>{"Relu"}) << ecg::Print(result.graph);
}

TEST(Rewrite, ReshapesMerge) {
  const Result result = Rewritten(R"(graph g(%x: f32[2, 3, 4]) {
  %s: i64[2] = const {6, 4}
  %t: i64[3] = const {2, 2, 6}
  %a: f32[6, 4] = Reshape(%x, %s)
  %b: f32[2, 2, 6] = Reshape(%a, %t)
  return %b, %a
})");
  // The first node stays for the second output, which no longer waits for it. Nothing is saved, so that nothing
  // changes.
  EXPECT_TRUE(result.firings.empty());
}

TEST(Rewrite, LargestSavingFirst) {
  // Both rules match at %y; the second saves more.
  auto rules = ParseRules("t",
                          "small: Add(A, Neg(B)) -> Sub(A, B) exact\n"
                          "large: Add(Exp(A), Neg(B)) -> Sub(B, A) reassociates\n");
  ASSERT_TRUE(rules.ok()) << rules.status();
  const auto result = RewriteWith(Parsed(R"(graph g(%a: f32[4], %b: f32[4]) {
  %e: f32[4] = Exp(%a)
  %n: f32[4] = Neg(%b)
  %y: f32[4] = Add(%e, %n)
  return %y
})"),
                                  *rules, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(RuleIds(*result), std::vector<std::string>{"large"});
  EXPECT_EQ(result->firings[0].flops_saved, 8);
  EXPECT_EQ(result->firings[0].where, "Add 'y'");
}

TEST(Rewrite, MatchesAcrossGroupings) {
  auto rules = ParseRules("t", "square: Mul(Sqrt(A), Sqrt(A)) -> A relaxed\n");
  ASSERT_TRUE(rules.ok()) << rules.status();
  const auto result = RewriteWith(Parsed(R"(graph g(%a: f32[4], %b: f32[4], %c: f32[4]) {
  %r: f32[4] = Sqrt(%b)
  %p: f32[4] = Mul(%a, %r)
  %q: f32[4] = Mul(%r, %c)
  %y: f32[4] = Mul(%p, %q)
  return %y
})"),
                                  *rules, {.math = MathLevel::kRelaxed, .disabled = {}});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(Ops(result->graph), (std::vector<std::string>{"Mul", "Mul"})) << ecg::Print(result->graph);
}

TEST(Rewrite, CompositesAreJudgedByNodes) {
  // The composite costs more FLOPs by the registry's count, but is one node instead of nine.
  const Result result = Rewritten(R"(graph g(%x: f32[4, 8]) {
  %last: i64[1] = const {-1}
  %two: f32[] = const {2.0}
  %e: f32[] = const {0.001}
  %s: f32[8] = const {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}
  %m: f32[4, 1] = ReduceMean(%x, %last)
  %d: f32[4, 8] = Sub(%x, %m)
  %q: f32[4, 8] = Pow(%d, %two)
  %v: f32[4, 1] = ReduceMean(%q, %last)
  %w: f32[4, 1] = Add(%v, %e)
  %r: f32[4, 1] = Sqrt(%w)
  %n: f32[4, 8] = Div(%d, %r)
  %t: f32[4, 8] = Mul(%n, %s)
  %y: f32[4, 8] = Add(%t, %s)
  return %y
})");
  EXPECT_EQ(RuleIds(result), std::vector<std::string>{"layer-norm-pow"});
  EXPECT_EQ(Ops(result.graph), std::vector<std::string>{"LayerNormalization"});
}

TEST(Rewrite, RefusesAnotherShape) {
  auto rules = ParseRules("t", "unit: Mul(A, 1) -> A exact\n");
  ASSERT_TRUE(rules.ok()) << rules.status();
  const auto result = RewriteWith(Parsed(R"(graph g(%a: f32[4]) {
  %one: f32[2, 1] = const {1.0, 1.0}
  %y: f32[2, 4] = Mul(%a, %one)
  return %y
})"),
                                  *rules, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->firings.empty());
}

// The work is counted rather than timed, so that it is the same on every machine. Limits are about twice today's
// counts.
void ExpectWork(const ecg::Graph& graph, int64_t most_match_steps, int64_t most_drafts) {
  const auto result = Rewrite(graph, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_GT(result->match_steps, 0);
  EXPECT_LT(result->match_steps, most_match_steps);
  EXPECT_LT(result->drafts, most_drafts);
}

TEST(Rewrite, ThousandsOfNodesTakeWorkInProportion) {
  const ecg::ValueType type{DType::kF32, {8, 8}};
  ecg::Graph graph;
  ecg::ValueId x = graph.AddInput("x", type);
  const ecg::ValueId c = graph.AddConstant("c", Tensor::From<double>(DType::kF32, {}, {1.5}));
  for (int i = 0; i < 500; ++i) {
    for (const char* op : {"Mul", "Add", "Sqrt", "Add"}) {
      std::vector<ecg::ValueId> inputs{x, c};
      if (op[0] == 'S') inputs.pop_back();
      x = graph.node(graph.AddNode(op, "", inputs, {}, {type})).outputs[0];
    }
  }
  graph.AddOutput(x, "y");
  ExpectWork(graph, 150000, 2000);
}

TEST(Rewrite, LongSumsOfProducts) {
  const ecg::ValueType type{DType::kF32, {2}};
  ecg::Graph graph;
  ecg::ValueId sum = graph.AddInput("x", type);
  for (int i = 0; i < 60; ++i) {
    ecg::ValueId product = graph.AddInput("p", type);
    for (int k = 0; k < 9; ++k) {
      product = graph.node(graph.AddNode("Mul", "", {product, graph.AddInput("q", type)}, {}, {type})).outputs[0];
    }
    sum = graph.node(graph.AddNode("Add", "", {sum, product}, {}, {type})).outputs[0];
  }
  graph.AddOutput(sum, "y");
  ExpectWork(graph, 4000000, 60000);
}

}  // namespace
}  // namespace fusion::rewrite
