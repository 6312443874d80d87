#include <gtest/gtest.h>

#include <limits>

#include "compiler/ecg/graph.h"

namespace fusion::ecg {
namespace {

Graph Sample() {
  Graph graph;
  graph.name = "sample";
  const ValueId x = graph.AddInput("x", {DType::kF32, {2, 3}});
  const ValueId small = graph.AddConstant("k", Tensor::From<double>(DType::kF32, {2}, {0.1, -1e30}));
  std::vector<int64_t> many(40);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * i);
  const ValueId large = graph.AddConstant("table", Tensor::From(DType::kI64, {5, 8}, many));
  Attributes attrs;
  attrs.Set("alpha", 1.0);
  attrs.Set("axes", std::vector<int64_t>{0, -1});
  attrs.Set("none", std::vector<double>{});
  attrs.Set("mode", std::string("a \"quoted\"\n*/ system(\"x\")"));
  attrs.Set("names", std::vector<std::string>{"p", "q;r"});
  attrs.Set("low", -std::numeric_limits<double>::infinity());
  attrs.Set("n", int64_t{-7});
  attrs.Set("value", Tensor::From<int64_t>(DType::kBool, {2}, {1, 0}));
  const NodeId split = graph.AddNode("Foo", "node name", {x, kNone, small, large}, attrs,
                                     {{DType::kF32, {1, 3}}, {DType::kF16, {}}}, {"*/ system(\"x\")", "x"});
  graph.AddOutput(graph.node(split).outputs[0], "first\noutput");
  graph.AddOutput(graph.node(split).outputs[1], "v4");
  return graph;
}

TEST(GraphText, PrintsTheSameAgain) {
  const std::string text = Print(Sample());
  auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(parsed->nodes().size(), 1u);
  EXPECT_EQ(parsed->node(0).inputs[1], kNone);
  EXPECT_EQ(parsed->node(0).attrs.String("mode"), "a \"quoted\"\n*/ system(\"x\")");
  EXPECT_EQ(parsed->node(0).attrs.Float("low"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(parsed->output_names()[0], "first\noutput");
}

TEST(GraphText, HostileNamesStayOutOfIdentifiers) {
  const std::string text = Print(Sample());
  EXPECT_NE(text.find("%v3: f32[1, 3], %v4: f16[] = Foo(%x, _, %k, %table)"), std::string::npos) << text;
  EXPECT_EQ(text.find("%*/"), std::string::npos);
}

TEST(GraphText, LargeConstantsStayDistinct) {
  auto parsed = Parse(
      "graph g() {\n  %a: f32[32] = const #00000000000000aa\n  %b: f32[32] = const #0000000000000000\n  return %a, "
      "%b\n}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->value(1).constant->GetDouble(31), 0.0);
  EXPECT_NE(parsed->value(0).constant->GetDouble(0), 0.0);
}

TEST(GraphText, ErrorsNameTheLine) {
  for (const char* text :
       {"", "graph", "graph g(%x: f32[2]) {\n return %y }", "graph g(%x: f99[2]) { return %x }",
        "graph g() { %a: f32[2] = const {1.0}\n return %a }", "graph g(%x: f32[1099511627776]) { return %x }",
        "graph g() { %a: f32[64] = const #12 return %a }", "graph g(%x: f32[2], %x: f32[2]) { return %x }"}) {
    auto parsed = Parse(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_NE(Parse("graph g(%x: f32[2]) {\n return %y }").status().message().find("line 2"), absl::string_view::npos);
}

TEST(Graph, TracksUses) {
  Graph graph;
  const ValueId x = graph.AddInput("x", {DType::kF32, {2}});
  const NodeId node = graph.AddNode("Add", "", {x, x}, {}, {{DType::kF32, {2}}});
  graph.AddOutput(graph.node(node).outputs[0], "y");
  EXPECT_EQ(graph.value(x).consumers, (std::vector<NodeId>{node, node}));
  EXPECT_TRUE(graph.IsOutput(graph.node(node).outputs[0]));
  EXPECT_FALSE(graph.IsOutput(x));
}

}  // namespace
}  // namespace fusion::ecg
