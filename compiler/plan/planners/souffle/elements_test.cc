#include "compiler/plan/planners/souffle/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"

namespace fusion::souffle {
namespace {

using ::testing::ElementsAre;

// Each element by the names of the values that its nodes make: "p+r".
std::vector<std::string> Row(const std::string& text, CutAt cut_at) {
  const auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const auto facts = FactsOf(graph.value());
  EXPECT_TRUE(facts.ok()) << facts.status();
  std::vector<std::string> row;
  std::vector<int> element(graph->nodes().size(), -1);
  for (const Element& one : ElementsOf(*graph, *facts, cut_at)) {
    std::vector<std::string> names;
    for (const ecg::NodeId id : one.nodes) {
      names.push_back(graph->value(graph->node(id).outputs[0]).name);
      element[id] = static_cast<int>(row.size());
    }
    row.push_back(absl::StrJoin(names, "+"));
  }
  for (ecg::NodeId id = 0; id < static_cast<int>(element.size()); ++id) {
    EXPECT_GE(element[id], 0) << "node " << id << " is in no element";
    for (const ecg::ValueId v : graph->node(id).inputs) {
      if (v == ecg::kNone || graph->value(v).producer == ecg::kNone) continue;
      EXPECT_LE(element[graph->value(v).producer], element[id]) << "node " << id << " reads what is made later";
    }
  }
  return row;
}

constexpr char kTwoProducts[] = R"(graph g(%x: f32[64, 64], %w: f32[64, 64]) {
    %scaled: f32[64, 64] = Exp(%x)
    %p: f32[64, 64] = MatMul(%scaled, %w)
    %q: f32[64, 64] = MatMul(%x, %w)
    %r: f32[64, 64] = Relu(%p)
    %s: f32[64, 64] = Softmax(%r) {axis = 1}
    %n: f32[64, 64] = Neg(%s)
    %a: f32[64, 64] = Add(%n, %q)
    return %a
  })";

// Arithmetic in front joins its first reader; what comes behind the first product follows it, although the second one
// stands between them.
TEST(Elements, MemoryIntensiveNodesFollowWhatReachesThem) {
  EXPECT_THAT(Row(kTwoProducts, CutAt::kComputeIntensive), ElementsAre("scaled+p+r+s+n", "q+a"));
}

TEST(Elements, ReductionsMayBeginElementsOfTheirOwn) {
  EXPECT_THAT(Row(kTwoProducts, CutAt::kReductions), ElementsAre("scaled+p+r", "q", "s+n+a"));
}

TEST(Elements, WithoutAnyAnchorTheProgramIsOneElement) {
  EXPECT_THAT(Row(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Exp(%x)
    %b: f32[8] = Neg(%a)
    return %a, %b
  })",
                  CutAt::kReductions),
              ElementsAre("a+b"));
}

// No expression describes a sort. Its operands run before it, its readers behind it.
TEST(Elements, RoutinesAreAlone) {
  EXPECT_THAT(Row(R"(graph g(%x: f32[8]) {
    %k: i64[1] = const {3}
    %a: f32[8] = Exp(%x)
    %t: f32[3], %i: i64[3] = TopK(%a, %k) {axis = 0}
    %b: f32[3] = Neg(%t)
    return %b, %i
  })",
                  CutAt::kComputeIntensive),
              ElementsAre("a", "t", "b"));
}

}  // namespace
}  // namespace fusion::souffle
