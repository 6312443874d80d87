#include "compiler/kernels/kernel_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// A cache over a graph, for AVX-512.
struct Started {
  explicit Started(const ecg::Graph& graph) { cache.Start(&graph, &layouts, &device); }
  const DeviceModel device = testing::Avx512Device();
  const ValueLayouts layouts;
  KernelCache cache{/*threads=*/1};
};

// Two equal layers; nodes 0 and 1, and nodes 2 and 3.
testing::GraphMaker TwoLayers() {
  testing::GraphMaker maker;
  for (int layer = 0; layer < 2; ++layer) maker.Out(maker.Op("Relu", {maker.Op("Exp", {maker.In({8, 16})})}));
  return maker;
}

TEST(KernelCache, FusionBlocksOfOneStructureShareAKernelWithTheirOwnArguments) {
  const testing::GraphMaker maker = TwoLayers();
  Started one(maker.graph());
  const auto first = one.cache.Get({0, 1}), second = one.cache.Get({2, 3});
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ((*first)->key, (*second)->key);
  EXPECT_EQ((*first)->args[0].value, maker.graph().node(0).inputs[0]);
  EXPECT_EQ((*second)->args[0].value, maker.graph().node(2).inputs[0]);
  EXPECT_EQ(*one.cache.Get({2, 3}), *second);
  EXPECT_GT(one.cache.EstimateNs({0, 1}), 0);
  EXPECT_EQ(one.cache.EstimateNs({0, 1}), one.cache.EstimateNs({2, 3}));
}

TEST(KernelCache, FusionBlocksWithOtherScopesAreOthers) {
  const testing::GraphMaker maker = TwoLayers();
  Started one(maker.graph());
  const ecg::ValueId value = maker.graph().node(0).outputs[0];
  FusionBlock apart = {0, 1};
  apart.inner = {{0, 1, value, Scope::kDevice, Scope::kDevice}};
  const auto merged = one.cache.Get({0, 1}), cut = one.cache.Get(apart);
  ASSERT_TRUE(merged.ok() && cut.ok()) << merged.status() << cut.status();
  EXPECT_NE((*merged)->key, (*cut)->key);
  EXPECT_GT(one.cache.Fit(apart)->phases, one.cache.Fit({0, 1})->phases);
  EXPECT_TRUE(CheckRealised(maker.graph(), apart, **cut).ok());
  EXPECT_EQ(CheckRealised(maker.graph(), apart, **merged).code(), absl::StatusCode::kInternal);
  // A lane cannot hand over what a planner wants behind a barrier, and nothing realises the scope of a warp there.
  apart.inner = {{0, 1, value, Scope::kWarp, Scope::kWarp}};
  EXPECT_EQ(one.cache.Fit(apart).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(KernelCache, AReplacementIsOfOneFusionBlock) {
  const testing::GraphMaker maker = TwoLayers();
  Started one(maker.graph());
  const auto before = one.cache.Get({0, 1});
  ASSERT_TRUE(before.ok()) << before.status();
  FusionKernel other = **before;
  other.key = "another";
  one.cache.Replace({0, 1}, other);
  EXPECT_EQ((*one.cache.Get({0, 1}))->key, "another");
  EXPECT_EQ((*one.cache.Get({2, 3}))->key, (*before)->key);
}

// Two layers of one structure; the products cannot be one kernel with the operators in front of them.
TEST(KernelCache, AReasonNamesItsOwnFusionBlock) {
  testing::GraphMaker maker;
  for (int layer = 0; layer < 2; ++layer) {
    const ecg::ValueId x = maker.In({1, 64, 28, 28});
    maker.Out(maker.Op("Conv", {maker.Op("Exp", {x}), maker.Weight({64, 64, 3, 3})},
                       {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  }
  Started one(maker.graph());
  for (ecg::NodeId first : {0, 2}) {
    const std::string own = maker.graph().value(maker.graph().node(first + 1).outputs[0]).name;
    EXPECT_THAT(one.cache.Fit({first, first + 1}).status().message(), HasSubstr("'" + own + "'"));
  }
}

TEST(KernelCache, WhatACoreDoesNotHoldIsRefused) {
  testing::GraphMaker maker;
  ecg::ValueId x = maker.In({64, 64});
  std::vector<ecg::NodeId> nodes;
  for (int i = 0; i < 800; ++i) {
    x = maker.Op("Exp", {x});
    nodes.push_back(i);
  }
  maker.Out(x);
  Started one(maker.graph());
  EXPECT_THAT(one.cache.Fit(nodes).status().message(), HasSubstr("exceeds the instruction cache"));
  EXPECT_TRUE(one.cache.Fit(std::vector<ecg::NodeId>(nodes.begin(), nodes.begin() + 100)).ok());
}

}  // namespace
}  // namespace fusion
