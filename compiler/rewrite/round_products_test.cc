#include "compiler/rewrite/round_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ecg/rounded.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::rewrite {
namespace {

using ::testing::HasSubstr;

// The operators that are rounded, by the names of their results.
std::vector<std::string> RoundedIn(const std::string& text) {
  const ecg::Graph graph = ecg::Parse(text).value();
  const ecg::Graph rounded = RoundProducts(graph);
  EXPECT_TRUE(ecg::Verify(rounded).ok()) << ecg::Verify(rounded);
  EXPECT_EQ(ecg::Print(RoundProducts(rounded)), ecg::Print(rounded)) << "nothing is left to do";
  std::vector<std::string> names;
  for (const ecg::Node& node : rounded.nodes()) {
    if (node.attrs.Int(ecg::kRounded) != 0) names.push_back(rounded.value(node.outputs[0]).name);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(RoundProducts, AProductThatAnotherOperatorAdds) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[8], %y: f32[8]) {
  %p: f32[8] = Mul(%y, %x)
  %q: f32[8] = Add(%x, %p)
  return %q
})"),
            Names{"p"});
}

TEST(RoundProducts, IsFoundBehindWhatMovesIt) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[2, 4], %y: f32[2, 4]) {
  %p: f32[2, 4] = Mul(%y, %x)
  %n: f32[2, 4] = Neg(%p)
  %t: f32[4, 2] = Transpose(%n) {perm = ints[1, 0]}
  %c: f32[8, 2] = Concat(%t, %t) {axis = 0}
  %axis: i64[1] = const {0}
  %s: f32[2] = ReduceSum(%c, %axis) {keepdims = 0}
  return %s
})"),
            Names{"p"});
}

TEST(RoundProducts, NotOneThatMeetsNoSum) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[8], %y: f32[8]) {
  %p: f32[8] = Mul(%y, %x)
  %r: f32[8] = Relu(%p)
  %q: f32[8] = Add(%x, %r)
  %m: f32[8] = Mul(%p, %y)
  return %q, %m
})"),
            Names{});
}

TEST(RoundProducts, NotOneThatCannotOverflow) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[8], %y: f32[8]) {
  %half: f32[] = const {0.5}
  %g: f32[8] = Sigmoid(%y)
  %p: f32[8] = Mul(%x, %g)
  %h: f32[8] = Mul(%x, %half)
  %a: f32[8] = Add(%x, %p)
  %b: f32[8] = Sub(%y, %h)
  return %a, %b
})"),
            Names{});
}

TEST(RoundProducts, NotOneThatTheSumCannotBringBack) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[8], %y: f32[8]) {
  %b: f32[8] = const #3f8000003f800000
  %p: f32[8] = Mul(%x, %y)
  %q: f32[8] = Add(%p, %b)
  %s: f32[8] = Mul(%x, %x)
  %t: f32[8] = Mul(%y, %y)
  %u: f32[8] = Add(%s, %t)
  %axis: i64[1] = const {0}
  %v: f32[1] = ReduceSum(%s, %axis)
  return %q, %u, %v
})"),
            Names{});
}

TEST(RoundProducts, NotWithinOneOperator) {
  EXPECT_EQ(RoundedIn(R"(graph g(%x: f32[4, 8], %w: f32[8, 3], %b: f32[3], %s: f32[8]) {
  %y: f32[4, 3] = Gemm(%x, %w, %b)
  %n: f32[4, 8] = LayerNormalization(%x, %s, %s)
  %z: f32[4, 8] = Add(%n, %n)
  return %y, %z
})"),
            Names{});
}

TEST(RoundProducts, TheLoweringRoundsAMarkedResult) {
  const ecg::Graph graph = RoundProducts(ecg::Parse(R"(graph g(%x: f32[8], %y: f32[8]) {
  %p: f32[8] = Mul(%y, %x)
  %q: f32[8] = Add(%x, %p)
  return %q
})")
                                             .value());
  EXPECT_THAT(ecg::Print(graph), HasSubstr("Mul(%y, %x) {rounded = 1}"));
  const auto lowered = ops::LowerNodes(graph, {0, 1}, graph.outputs()).value();
  EXPECT_THAT(te::Print(lowered.program), HasSubstr("cast.f32(mul("));
}

TEST(RoundProducts, AReductionIsRoundedBehindIt) {
  const ecg::Graph graph = RoundProducts(ecg::Parse(R"(graph g(%x: f32[8, 2], %y: f32[8]) {
  %axis: i64[1] = const {1}
  %p: f32[8] = ReduceProd(%x, %axis) {keepdims = 0}
  %q: f32[8] = Add(%y, %p)
  return %q
})")
                                             .value());
  const auto lowered = ops::LowerNodes(graph, {0, 1}, graph.outputs()).value();
  EXPECT_THAT(te::Print(lowered.program), HasSubstr("then (cast.f32(acc0))"));
  EXPECT_TRUE(te::Verify(lowered.program).ok());
}

}  // namespace
}  // namespace fusion::rewrite
