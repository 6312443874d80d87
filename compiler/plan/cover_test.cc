#include "compiler/plan/cover.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/testing/accepting_oracle.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text);
  return std::move(graph).value();
}

// a feeds b and c; c feeds d.
const char kFork[] = R"(graph g(%x: f32[8]) {
  %a: f32[8] = Abs(%x)
  %b: f32[8] = Exp(%a)
  %c: f32[8] = Neg(%a)
  %d: f32[8] = Exp(%c)
  return %b, %d
})";

TEST(FusionBlocksOfCover, TheFirstHolderOwnsAndTheOthersRecompute) {
  const ecg::Graph graph = Parsed(kFork);
  const auto fusion_blocks = FusionBlocksOfCover(graph, {{0, 2, 3}, {0, 1}});
  ASSERT_TRUE(fusion_blocks.ok()) << fusion_blocks.status();
  FusionPlan plan;
  plan.fusion_blocks = *fusion_blocks;
  EXPECT_TRUE(CheckPlan(graph, plan).ok()) << CheckPlan(graph, plan);
  EXPECT_THAT(FusionBlockNames(graph, plan), ElementsAre("a+b", "c+d, again a"));
  // Both readers compute %a, so that nobody reads it from memory.
  EXPECT_THAT((*fusion_blocks)[0].unread, ElementsAre(graph.node(0).outputs[0]));
  EXPECT_EQ(LiveOut(graph, (*fusion_blocks)[0]), graph.node(1).outputs);
}

TEST(FusionBlocksOfCover, WhatOnlyOneHoldsIsStored) {
  const ecg::Graph graph = Parsed(kFork);
  const auto fusion_blocks = FusionBlocksOfCover(graph, {{2, 3}, {0, 1}});
  ASSERT_TRUE(fusion_blocks.ok()) << fusion_blocks.status();
  EXPECT_THAT(FusionBlockNames(graph, {*fusion_blocks, {}}), ElementsAre("a+b", "c+d"));
  EXPECT_TRUE((*fusion_blocks)[0].unread.empty());
  EXPECT_EQ(LiveOut(graph, (*fusion_blocks)[0]).size(), 2u);
}

TEST(FusionBlocksOfCover, WhatARecomputedReaderReadsIsStored) {
  // %c is computed in both fusion blocks, and the second one reads %a for it, whose readers in the graph are all in the
  // first.
  const ecg::Graph graph = Parsed(R"(graph g(%x: f32[8]) {
    %a: f32[8] = Exp(%x)
    %c: f32[8] = Neg(%a)
    %d: f32[8] = Exp(%c)
    %e: f32[8] = Exp(%d)
    %f: f32[8] = Add(%e, %c)
    return %d, %f
  })");
  const auto fusion_blocks = FusionBlocksOfCover(graph, {{0, 1, 2}, {1, 3, 4}});
  ASSERT_TRUE(fusion_blocks.ok()) << fusion_blocks.status();
  FusionPlan plan;
  plan.fusion_blocks = *fusion_blocks;
  EXPECT_TRUE(CheckPlan(graph, plan).ok()) << CheckPlan(graph, plan);
  EXPECT_EQ(plan.fusion_blocks[0].kept, graph.node(0).outputs);
  EXPECT_THAT(LiveOut(graph, plan.fusion_blocks[0]), ElementsAre(graph.node(0).outputs[0], graph.node(2).outputs[0]));
  plan.fusion_blocks[0].kept.clear();
  EXPECT_THAT(std::string(CheckPlan(graph, plan).message()), HasSubstr("makes and does not store"));
}

TEST(FusionBlocksOfCover, NoReaderOfAnAmbiguousNode) {
  const ecg::Graph graph = Parsed(kFork);
  const auto fusion_blocks = FusionBlocksOfCover(graph, {{0, 1}, {0, 2}, {3}});
  ASSERT_TRUE(fusion_blocks.ok()) << fusion_blocks.status();  // %d reads %c, which one set holds
  const auto ambiguous = FusionBlocksOfCover(graph, {{0, 1}, {0, 3}, {2}});
  EXPECT_EQ(ambiguous.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(ambiguous.status().message()), HasSubstr("which 2 fusion blocks compute"));
}

TEST(FusionBlocksOfCover, CyclesAreNamed) {
  const ecg::Graph graph = Parsed(R"(graph g(%x: f32[8], %y: f32[8]) {
    %p: f32[8] = Abs(%x)
    %r: f32[8] = Exp(%y)
    %q: f32[8] = Add(%p, %r)
    %s: f32[8] = Sub(%r, %p)
    return %q, %s
  })");
  const auto fusion_blocks = FusionBlocksOfCover(graph, {{0, 2}, {1, 3}});
  EXPECT_EQ(fusion_blocks.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(fusion_blocks.status().message()), HasSubstr("close a cycle through"));
}

}  // namespace
}  // namespace fusion
