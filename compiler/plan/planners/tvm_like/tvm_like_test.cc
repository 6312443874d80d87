#include "compiler/plan/planners/tvm_like/tvm_like.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/planners/tvm_like/post_dominators.h"
#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TvmLikeTest : public testing::Test {
 protected:
  std::vector<std::string> Blocks(const std::string& text) {
    auto graph = ecg::Parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = std::move(graph).value();
    auto plan = TvmLikePlanner()->Plan(graph_, DeviceModel(), oracle_, {});
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    plan_ = std::move(plan).value();
    EXPECT_TRUE(CheckPlan(graph_, plan_).ok()) << CheckPlan(graph_, plan_);
    return FusionBlockNames(graph_, plan_);
  }
  AcceptingOracle oracle_;
  ecg::Graph graph_;
  FusionPlan plan_;
};

TEST_F(TvmLikeTest, AProductTakesElementwiseOperatorsBehind) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[1, 4, 8, 8], %w: f32[4, 4, 1, 1], %k: f32[4, 1, 1]) {
    %a: f32[1, 4, 8, 8] = Abs(%x)
    %b: f32[1, 4, 8, 8] = Conv(%a, %w)
    %c: f32[1, 4, 8, 8] = Add(%b, %k)
    %d: f32[1, 4, 8, 8] = Relu(%c)
    %e: f32[1, 4, 8, 8] = Conv(%d, %w)
    %f: f32[1, 4, 8, 8] = Add(%e, %d)
    return %f
  })"),
              // Operators in front of a product are apart, and the sum joins the second one.
              ElementsAre("a", "b+c+d", "e+f"));
}

TEST_F(TvmLikeTest, AReductionTakesInjectiveOperatorsInFrontAndNothingBehind) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %axis: i64[1] = const {1}
    %a: f32[8, 8] = Abs(%x)
    %b: f32[8, 8] = Exp(%a)
    %r: f32[8, 1] = ReduceSum(%b, %axis)
    %n: f32[8, 1] = Neg(%r)
    return %n
  })"),
              ElementsAre("a+b+r", "n"));
}

TEST_F(TvmLikeTest, InjectiveIntoInjectiveInTheSecondPhase) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[4, 8]) {
    %s: i64[3] = const {4, 2, 4}
    %a: f32[4, 2, 4] = Reshape(%x, %s)
    %b: f32[2, 4, 4] = Transpose(%a) {perm = ints[1, 0, 2]}
    %c: f32[2, 4, 4] = Relu(%b)
    return %c
  })"),
              ElementsAre("a+b+c"));
  // A transposition does not follow a product.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[4, 8], %w: f32[8, 8]) {
    %p: f32[4, 8] = MatMul(%x, %w)
    %t: f32[8, 4] = Transpose(%p) {perm = ints[1, 0]}
    %u: f32[8, 4] = Relu(%t)
    return %u
  })"),
              ElementsAre("p", "t+u"));
}

TEST_F(TvmLikeTest, SoftmaxIsOpaque) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Abs(%x)
    %s: f32[8, 8] = Softmax(%a) {axis = 1}
    %b: f32[8, 8] = Neg(%s)
    return %b
  })"),
              ElementsAre("a", "s", "b"));
}

TEST_F(TvmLikeTest, EverythingUpToThePostDominatorOrNothing) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Abs(%x)
    %b: f32[8, 8] = Exp(%a)
    %c: f32[8, 8] = Neg(%a)
    %d: f32[8, 8] = Add(%b, %c)
    return %d
  })"),
              ElementsAre("a+b+c+d"));
  // One of the paths runs through a product.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8], %w: f32[8, 8]) {
    %a: f32[8, 8] = Abs(%x)
    %b: f32[8, 8] = MatMul(%a, %w)
    %c: f32[8, 8] = Neg(%a)
    %d: f32[8, 8] = Add(%b, %c)
    return %d
  })"),
              ElementsAre("a", "b+c+d"));
  // A result of the model has no post-dominator.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Abs(%x)
    %b: f32[8] = Exp(%a)
    return %a, %b
  })"),
              ElementsAre("a", "b"));
}

TEST_F(TvmLikeTest, WhatCannotBeOneKernelIsHalved) {
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) { return fusion_block.nodes.size() > 2; };
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Abs(%x)
    %b: f32[8] = Neg(%a)
    %c: f32[8] = Abs(%b)
    %d: f32[8] = Neg(%c)
    return %d
  })"),
              ElementsAre("a+b", "c+d"));
  for (const Decision& decision : plan_.decisions) {
    if (decision.fused) continue;
    EXPECT_THAT(decision.reason, HasSubstr("cannot be one kernel: the test refuses it"));
  }
}

TEST_F(TvmLikeTest, PostDominatorsOfADiamondWithATail) {
  auto graph = ecg::Parse(R"(graph g(%x: f32[8, 8]) {
    %a: f32[8, 8] = Abs(%x)
    %b: f32[8, 8] = Exp(%a)
    %t: f32[8, 8] = Transpose(%a) {perm = ints[1, 0]}
    %d: f32[8, 8] = Add(%b, %t)
    %e: f32[8, 8] = Neg(%d)
    return %e
  })");
  const std::vector<PostDominator> tree = PostDominators(MakePatternGraph(*graph, TraitsOf(*graph)));
  EXPECT_EQ(tree[0].node, 3);
  EXPECT_EQ(tree[0].pattern, Pattern::kInjective);  // by way of the transposition
  EXPECT_EQ(tree[3].node, 4);
  EXPECT_EQ(tree[3].pattern, Pattern::kElementwise);
  EXPECT_EQ(tree[4].node, ecg::kNone);
}

}  // namespace
}  // namespace fusion
