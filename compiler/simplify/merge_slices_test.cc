#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ecg/text.h"
#include "compiler/ops/registry/expression.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

int Expressions(const ecg::Graph& graph) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [](const ecg::Node& node) { return node.op == ops::kExpression; }));
}

// Merges the slices of a graph of one input, and checks that its results stay.
ecg::Graph Merged(const std::string& text) {
  auto graph = ecg::Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  ecg::Graph merged = MergeSlices(*graph);
  EXPECT_TRUE(ecg::Verify(merged).ok()) << ecg::Verify(merged);
  const ecg::ValueType& type = graph->value(graph->inputs()[0]).type;
  Tensor x(type.dtype, type.shape);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.SetDouble(i, static_cast<double>(i % 251));
  const auto before = ecg::Interpret(*graph, {x}), after = ecg::Interpret(merged, {x});
  EXPECT_TRUE(before.ok() && after.ok()) << before.status() << after.status();
  for (size_t o = 0; o < before->size(); ++o) {
    EXPECT_EQ((*before)[o].shape(), (*after)[o].shape());
    for (int64_t i = 0; i < (*before)[o].num_elements(); ++i) {
      EXPECT_EQ((*before)[o].GetDouble(i), (*after)[o].GetDouble(i)) << o << " " << i;
    }
  }
  return merged;
}

// Four slices of an image of 8 × 8, which begin at these places, with these steps; `tail`: what is done to them.
std::string FourSlices(const std::vector<std::pair<int, int>>& places, int step, int extent, const std::string& tail,
                       const std::string& source = "%x") {
  std::string text =
      absl::StrCat("graph g(%x: f32[1, 3, 8, 8]) {\n  %axes: i64[2] = const {2, 3}\n  %steps: i64[2] = const {", step,
                   ", ", step, "}\n  %y: f32[1, 3, 8, 8] = Relu(%x)\n");
  for (size_t p = 0; p < places.size(); ++p) {
    const auto [row, column] = places[p];
    absl::StrAppend(&text, "  %b", p, ": i64[2] = const {", row, ", ", column, "}\n  %e", p, ": i64[2] = const {",
                    row + (extent - 1) * step + 1, ", ", column + (extent - 1) * step + 1, "}\n  %s", p, ": f32[1, 3, ",
                    extent, ", ", extent, "] = Slice(", p + 1 == places.size() ? source : "%x", ", %b", p, ", %e", p,
                    ", %axes, %steps)\n");
  }
  return absl::StrCat(text, tail, "}\n");
}

constexpr char kConcat[] = "  %c: f32[1, 12, 4, 4] = Concat(%s0, %s1, %s2, %s3) {axis = 1}\n  return %c\n";

TEST(MergeSlices, EverySecondRowAndColumn) {
  const ecg::Graph merged = Merged(FourSlices({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, 2, 4, kConcat));
  ASSERT_EQ(merged.nodes().size(), 1u) << ecg::Print(merged);
  EXPECT_EQ(Expressions(merged), 1);
  EXPECT_EQ(merged.value(merged.outputs()[0]).name, "c");
  for (const char* type : {"f16", "i64", "u8", "bool"}) {
    const std::string text = FourSlices({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, 2, 4, kConcat);
    EXPECT_EQ(
        Expressions(Merged(absl::StrReplaceAll(text, {{"f32", type}, {"  %y: f32[1, 3, 8, 8] = Relu(%x)\n", ""}}))), 1);
  }
}

TEST(MergeSlices, ShiftedViewsThatAreStacked) {
  std::string tail = "  %at: i64[1] = const {2}\n";
  for (int p = 0; p < 4; ++p) absl::StrAppend(&tail, "  %u", p, ": f32[1, 3, 1, 5, 5] = Unsqueeze(%s", p, ", %at)\n");
  absl::StrAppend(&tail, "  %c: f32[1, 3, 4, 5, 5] = Concat(%u0, %u1, %u2, %u3) {axis = 2}\n  return %c\n");
  EXPECT_EQ(Merged(FourSlices({{0, 0}, {0, 2}, {3, 0}, {3, 2}}, 1, 5, tail)).nodes().size(), 1u);
}

TEST(MergeSlices, ColumnsOfHeadsOneBehindAnother) {
  const ecg::Graph merged = Merged(R"(graph g(%x: f32[2, 5, 12]) {
  %s: i64[3] = const {4, 4, 4}
  %a: f32[2, 5, 4], %b: f32[2, 5, 4], %d: f32[2, 5, 4] = Split(%x, %s) {axis = 2}
  %c: f32[6, 5, 4] = Concat(%a, %b, %d) {axis = 0}
  return %c
}
)");
  EXPECT_EQ(merged.nodes().size(), 1u) << ecg::Print(merged);
}

TEST(MergeSlices, OthersStillReadTheSlices) {
  const std::string tail =
      "  %c: f32[1, 12, 4, 4] = Concat(%s0, %s1, %s2, %s3) {axis = 1}\n  %r: f32[1, 3, 4, 4] = Relu(%s1)\n  return %c, "
      "%r\n";
  const ecg::Graph merged = Merged(FourSlices({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, 2, 4, tail));
  EXPECT_EQ(merged.nodes().size(), 3u) << ecg::Print(merged);
}

TEST(MergeSlices, NothingWhereOneIsUnevenOrAnothers) {
  for (const std::string& text : {FourSlices({{0, 0}, {1, 0}, {0, 1}, {2, 1}}, 1, 4, kConcat),
                                  FourSlices({{0, 0}, {1, 0}, {0, 1}, {1, 1}}, 2, 4, kConcat, "%y")}) {
    EXPECT_EQ(Expressions(Merged(text)), 0) << text;
  }
}

}  // namespace
}  // namespace fusion::simplify
