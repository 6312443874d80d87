#include "compiler/movement/kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/movement/testing/sample_kernel.h"

namespace fusion::movement {
namespace {

using ::fusion::movement::testing::Sample;

TEST(VisitBuffers, VisitsLoadsInStoreAddressesAndLimits) {
  Kernel kernel = Sample();
  Step& step = kernel.phases[0].steps[0];
  const auto loaded = [](int buffer) { return te::Index::Load(buffer, {te::Index(0)}, {0, 3}); };
  step.loops[0].limit = loaded(2);
  step.stores[0].address = step.stores[0].address + loaded(3);
  step.lane_limit = Bound{loaded(4), 1};
  step.strategy = RegisterTile{.store_limit = Bound{loaded(5), 1}};
  std::set<int> visited;
  VisitBuffers(step, [&](int buffer) { visited.insert(buffer); });
  EXPECT_THAT(visited, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Kernel, ScratchIsAlignedAndHasSlack) {
  Kernel kernel = Sample();
  kernel.buffers.push_back({Scope::kBlock, DType::kF32, 17});
  kernel.buffers.push_back({Scope::kBlock, DType::kI64, 3});
  const std::vector<int64_t> offsets = kernel.scratch_offset_bytes();
  EXPECT_EQ(offsets[0], -1);
  EXPECT_EQ(offsets[2], 0);
  EXPECT_EQ(offsets[3] % 64, 0);
  EXPECT_GE(offsets[3], 17 * 4 + 64);
  EXPECT_EQ(kernel.num_args(), 2);
  EXPECT_EQ(kernel.phases[0].tasks(), 4);
}

}  // namespace
}  // namespace fusion::movement
