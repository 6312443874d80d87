#include "compiler/onnx/node_order.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The order of the graph's nodes, where `x` and `w` are defined outside.
absl::StatusOr<std::vector<int>> Order(const std::string& graph) {
  onnx::GraphProto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(graph, &proto)) << graph;
  const std::set<std::string> outside = {"x", "w"};
  return NeededNodesInOrder(proto, [&](const std::string& name) { return outside.count(name) > 0; });
}

std::string Error(const std::string& graph) {
  const absl::Status status = Order(graph).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

constexpr char kOutput[] = "output { name: 'y' }";

TEST(NeededNodesInOrder, ProducersStandFirstAndOtherwiseTheFilesOrderStays) {
  const auto order = Order(absl::StrCat(NodeText("Add", {"a", "b"}, {"y"}), NodeText("Exp", {"x"}, {"b"}),
                                        NodeText("Neg", {"x"}, {"a"}), kOutput));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, ElementsAre(1, 2, 0));
}

TEST(NeededNodesInOrder, WhatNoOutputNeedsIsLeftOut) {
  const auto order = Order(absl::StrCat(NodeText("Exp", {"x"}, {"a"}), NodeText("Neg", {"a"}, {"unused"}),
                                        NodeText("Split", {"a"}, {"y", "other"}), kOutput));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, ElementsAre(0, 2));
  const auto none = Order(absl::StrCat(NodeText("Exp", {"x"}, {"a"}), "output { name: 'x' }"));
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_THAT(*none, IsEmpty()) << "an input is returned";
}

TEST(NeededNodesInOrder, ASubgraphUsesWhatItCaptures) {
  const std::string branch =
      absl::StrCat("attribute { name: 'then_branch' type: GRAPH g { ", NodeText("Add", {"a", "inner"}, {"r"}),
                   NodeText("Exp", {"x"}, {"inner"}), "output { name: 'r' } } }");
  const auto order = Order(absl::StrCat(NodeText("If", {"x"}, {"y"}, branch), NodeText("Neg", {"x"}, {"a"}), kOutput));
  ASSERT_TRUE(order.ok()) << order.status();
  EXPECT_THAT(*order, ElementsAre(1, 0));
  EXPECT_THAT(Error(absl::StrCat(NodeText("If", {"x"}, {"y"}, branch), kOutput)),
              AllOf(HasSubstr("If \"y\" reads \"a\""), HasSubstr("which nothing defines")));
}

TEST(NeededNodesInOrder, AnOptionalInputThatIsAbsentIsNoName) {
  const auto order = Order(absl::StrCat(NodeText("Clip", {"x", "", "w"}, {"y"}), kOutput));
  ASSERT_TRUE(order.ok()) << order.status();
}

TEST(NeededNodesInOrder, CyclesAreNamed) {
  EXPECT_THAT(
      Error(absl::StrCat(NodeText("Exp", {"x"}, {"e"}), NodeText("Add", {"e", "c"}, {"a"}),
                         NodeText("Neg", {"a"}, {"b"}), NodeText("Abs", {"b"}, {"c"}), NodeText("Exp", {"c"}, {"y"}),
                         kOutput)),
      AllOf(HasSubstr("a cycle of 3 node(s)"), HasSubstr("Add \"a\""), HasSubstr("Neg \"b\""), HasSubstr("Abs \"c\"")));
  EXPECT_THAT(Error(absl::StrCat(NodeText("Add", {"x", "y"}, {"y"}), kOutput)), HasSubstr("a cycle of 1 node(s)"));
  std::string ring;
  for (int i = 0; i < 100; ++i) {
    absl::StrAppend(&ring, NodeText("Neg", {absl::StrCat("v", (i + 1) % 100)}, {absl::StrCat("v", i)}));
  }
  EXPECT_THAT(Error(ring), AllOf(HasSubstr("a cycle of 100 node(s)"), HasSubstr(", …")));
}

TEST(NeededNodesInOrder, NamesAreDefinedOnce) {
  EXPECT_THAT(Error(absl::StrCat(NodeText("Exp", {"x"}, {"y"}), NodeText("Neg", {"x"}, {"y"}), kOutput)),
              HasSubstr("Neg \"y\" defines \"y\", which is already defined"));
  EXPECT_THAT(Error(absl::StrCat(NodeText("Exp", {"x"}, {"w"}), kOutput)), HasSubstr("which is already defined"));
  EXPECT_THAT(Error(kOutput), HasSubstr("graph output \"y\" is not defined by anything"));
}

TEST(NodeTitle, IsTheNameOrTheFirstOutputEscaped) {
  onnx::NodeProto node;
  node.set_op_type("Exp");
  EXPECT_EQ(NodeTitle(node), "Exp \"\"");
  node.add_output("");
  node.add_output("second");
  EXPECT_EQ(NodeTitle(node), "Exp \"second\"");
  node.set_name("a\n\"b\"");
  EXPECT_EQ(NodeTitle(node), "Exp \"a\\n\\\"b\\\"\"");
}

}  // namespace
}  // namespace fusion::onnx_import
