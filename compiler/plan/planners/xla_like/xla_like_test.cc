#include "compiler/plan/planners/xla_like/xla_like.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class XlaLikeTest : public testing::Test {
 protected:
  std::vector<std::string> Blocks(const std::string& text) {
    auto graph = ecg::Parse(text);
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = std::move(graph).value();
    auto plan = XlaLikePlanner()->Plan(graph_, DeviceModel(), oracle_, options_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    if (!plan.ok()) return {};
    plan_ = std::move(plan).value();
    EXPECT_TRUE(CheckPlan(graph_, plan_).ok()) << CheckPlan(graph_, plan_);
    return FusionBlockNames(graph_, plan_);
  }
  Decision Of(const std::string& producer, const std::string& consumer) {
    for (const Decision& d : plan_.decisions) {
      if (NamesOf(graph_, {d.producer}) == producer && NamesOf(graph_, {d.consumer}) == consumer) return d;
    }
    ADD_FAILURE() << "no decision on " << producer << " -> " << consumer;
    return {};
  }
  AcceptingOracle oracle_;
  PlanOptions options_;
  ecg::Graph graph_;
  FusionPlan plan_;
};

// FusionStitching's Figure 1: two fusions end with reductions, one with an expensive operator on a small tensor, and
// the last one normalises.
const char kLayerNorm[] = R"(graph g(%x: f32[64, 256], %g: f32[256], %b: f32[256]) {
  %axis: i64[1] = const {1}
  %eps: f32[1] = const {0.00001}
  %mean: f32[64, 1] = ReduceMean(%x, %axis)
  %d: f32[64, 256] = Sub(%x, %mean)
  %sq: f32[64, 256] = Mul(%d, %d)
  %var: f32[64, 1] = ReduceMean(%sq, %axis)
  %e: f32[64, 1] = Add(%var, %eps)
  %s: f32[64, 1] = Sqrt(%e)
  %n: f32[64, 256] = Div(%d, %s)
  %m: f32[64, 256] = Mul(%n, %g)
  %y: f32[64, 256] = Add(%m, %b)
  return %y
})";

TEST_F(XlaLikeTest, LayerNormOfFigure1IsFourKernels) {
  // %d is computed twice: for the variance and for the result.
  EXPECT_THAT(Blocks(kLayerNorm), ElementsAre("mean", "d+sq+var", "e+s", "n+m+y, again d"));
  EXPECT_EQ(Of("mean", "d").reason, "a reduction would be repeated by every reader");
  EXPECT_EQ(Of("s", "n").reason, "an expensive operator would be repeated by every reader");
  EXPECT_TRUE(Of("d", "n").fused);
  // Values are handed over within a thread.
  ASSERT_EQ(plan_.fusion_blocks[1].inner.size(), 2u);
  EXPECT_EQ(plan_.fusion_blocks[1].inner[0].furthest, Scope::kLane);
  // %d is never stored.
  EXPECT_EQ(LiveOut(graph_, plan_.fusion_blocks[1]), graph_.node(3).outputs);
}

TEST_F(XlaLikeTest, ProductsAreAloneAndReadFromMemory) {
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8], %w: f32[8, 8], %b: f32[8]) {
    %a: f32[8, 8] = Abs(%x)
    %p: f32[8, 8] = MatMul(%a, %w)
    %c: f32[8, 8] = Add(%p, %b)
    %r: f32[8, 8] = Relu(%c)
    %s: f32[8, 8] = Add(%r, %a)
    return %s
  })"),
              ElementsAre("a", "p", "c+r+s"));
  EXPECT_THAT(Of("a", "p").reason, HasSubstr("reads it from memory"));
  // It is in memory for the product, so that others read it too.
  EXPECT_FALSE(Of("a", "s").fused);
}

TEST_F(XlaLikeTest, OnlyWhatReadsOneLargeOperandIsDuplicated) {
  // %s reads two, and two fusions read it; %n reads one.
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8, 8], %y: f32[8, 8], %b: f32[8]) {
    %s: f32[8, 8] = Add(%x, %y)
    %n: f32[8, 8] = Mul(%s, %b)
    %e: f32[8, 8] = Exp(%n)
    %t: f32[8, 8] = Tanh(%n)
    return %e, %t
  })"),
              ElementsAre("s", "n+e", "t, again n"));
  EXPECT_THAT(Of("s", "n").reason, HasSubstr("2 fusions would read its several operands"));
}

TEST_F(XlaLikeTest, WhatCannotBeOneKernelIsCutInTwo) {
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) { return fusion_block.Members().size() > 2; };
  EXPECT_THAT(Blocks(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Abs(%x)
    %b: f32[8] = Neg(%a)
    %c: f32[8] = Abs(%b)
    %d: f32[8] = Neg(%c)
    return %d
  })"),
              ElementsAre("a+b", "c+d"));
  EXPECT_THAT(Of("b", "c").reason, HasSubstr("it cannot be one kernel with"));
}

TEST_F(XlaLikeTest, ScratchWhereNoScheduleComputesAgain) {
  oracle_.refuse = [](const ecg::Graph&, const FusionBlock& fusion_block) {
    return std::any_of(fusion_block.inner.begin(), fusion_block.inner.end(),
                       [](const HandOver& hand_over) { return hand_over.furthest == Scope::kLane; });
  };
  EXPECT_THAT(Blocks("graph g(%x: f32[8]) {\n %a: f32[8] = Abs(%x)\n %b: f32[8] = Neg(%a)\n return %b\n}"),
              ElementsAre("a+b"));
  EXPECT_TRUE(plan_.fusion_blocks[0].inner.empty());
}

TEST_F(XlaLikeTest, FusionsDoNotGrowWithoutEnd) {
  std::string text = "graph g(%x: f32[4]) {\n", last = "%x";
  for (int i = 0; i < 150; ++i) {
    absl::StrAppend(&text, "  %a", i, ": f32[4] = Abs(", last, ")\n");
    last = absl::StrCat("%a", i);
  }
  Blocks(absl::StrCat(text, "  return ", last, ", %a140\n}"));
  ASSERT_EQ(plan_.fusion_blocks.size(), 4u);
  EXPECT_EQ(plan_.fusion_blocks[2].nodes.size(), 64u);
  EXPECT_THAT(Of("a76", "a77").reason, HasSubstr("at most 64 operators"));
}

TEST_F(XlaLikeTest, Cancellation) {
  options_.cancelled = [] { return true; };
  auto graph = ecg::Parse(kLayerNorm);
  EXPECT_EQ(XlaLikePlanner()->Plan(*graph, DeviceModel(), oracle_, options_).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
