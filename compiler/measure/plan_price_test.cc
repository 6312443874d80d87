#include "compiler/measure/plan_price.h"

#include <gtest/gtest.h>

#include "compiler/api/compile_context.h"
#include "compiler/measure/fusion_oracle.h"
#include "compiler/measure/testing/pairs.h"

namespace fusion {
namespace {

class PlanPrice : public ::testing::Test {
 protected:
  // Prices the plan of a graph with these fusion blocks.
  PlanEstimate Price(const testing::GraphMaker& maker, const std::vector<FusionBlock>& fusion_blocks) {
    context_.device = &device_;
    context_.oracle = &estimates_;
    GraphFusionOracle oracle(context_, 1);
    oracle.Start(&maker.graph(), &layouts_);
    const auto estimate = oracle.EstimatePlan(maker.graph(), fusion_blocks);
    EXPECT_TRUE(estimate.ok()) << estimate.status();
    return estimate.value_or(PlanEstimate());
  }
  DeviceModel device_ = testing::Avx512Device();
  const ValueLayouts layouts_;
  ModelOracle estimates_;
  CompileContext context_;
};

TEST_F(PlanPrice, AFusedElementwiseChainCostsLess) {
  testing::GraphMaker maker;
  const auto x = maker.Op("Relu", {maker.In({1024, 1024})});
  maker.Out(maker.Op("Sigmoid", {x}));
  const PlanEstimate fused = Price(maker, {{0, 1}}), apart = Price(maker, {{0}, {1}});
  EXPECT_EQ(fused.launches, 1);
  EXPECT_EQ(apart.launches, 2);
  EXPECT_GT(fused.ns, 0);
  EXPECT_LT(fused.ns, apart.ns);
}

// A sum of cold kernels would not know in which order they run.
TEST_F(PlanPrice, AConsumerThatFollowsItsProducerFindsWhatThatLeft) {
  testing::GraphMaker maker;
  // Each value takes 256 KB; all six do not fit the L2 that the first two fit.
  const auto a = maker.Op("Relu", {maker.In({256, 256})}), b = maker.Op("Relu", {maker.In({256, 256})});
  const auto c = maker.Op("Relu", {maker.In({256, 256})});
  for (const auto v : {a, b, c}) maker.Out(maker.Op("Neg", {v}));
  const double near = Price(maker, {{0}, {3}, {1}, {4}, {2}, {5}}).ns;
  const double far = Price(maker, {{0}, {1}, {2}, {3}, {4}, {5}}).ns;
  EXPECT_LT(near, 0.9 * far) << far;
}

TEST_F(PlanPrice, BarriersAndLaunchesAreCountedApart) {
  testing::GraphMaker maker;
  const auto product = maker.Op("MatMul", {maker.In({128, 768}), maker.Weight({768, 768})});
  maker.Out(maker.Op("Softmax", {product}, {{"axis", int64_t{-1}}}));
  FusionBlock across = {0, 1};
  across.inner = {{0, 1, maker.graph().node(0).outputs[0], Scope::kDevice, Scope::kDevice}};
  const PlanEstimate one = Price(maker, {across}), two = Price(maker, {{0}, {1}});
  EXPECT_EQ(one.launches, 1);
  EXPECT_GE(one.barriers, 1);
  EXPECT_EQ(two.launches, 2);
}

}  // namespace
}  // namespace fusion
