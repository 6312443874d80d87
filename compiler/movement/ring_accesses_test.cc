#include "compiler/movement/ring_accesses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/movement/testing/window_kernel.h"

namespace fusion::movement {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

size_t ConditionsOfTheLoad(const Kernel& kernel, MaskedLanes masked) {
  const std::vector<RingAccess> accesses = RingAccessesOf(kernel, kernel.phases[0].steps[1], masked);
  EXPECT_THAT(accesses, SizeIs(1));
  return accesses.empty() ? 0 : accesses[0].conditions.size();
}

TEST(RingAccesses, AreLoadsAndStoresOfRingsAlone) {
  const Kernel kernel = testing::SlidingSums();
  const std::vector<RingAccess> stored = RingAccessesOf(kernel, kernel.phases[0].steps[0], MaskedLanes::kLeftOut);
  ASSERT_THAT(stored, SizeIs(1));
  EXPECT_TRUE(stored[0].store);
  EXPECT_EQ(stored[0].buffer, 2);
  EXPECT_THAT(stored[0].conditions, IsEmpty());
  const std::vector<RingAccess> loaded = RingAccessesOf(kernel, kernel.phases[0].steps[1], MaskedLanes::kLeftOut);
  ASSERT_THAT(loaded, SizeIs(1));
  EXPECT_FALSE(loaded[0].store);
}

TEST(RingAccesses, MaskedLanesAreComputedInVectorsOnly) {
  Kernel kernel = testing::SlidingSums();
  Step& sum = kernel.phases[0].steps[1];
  const size_t on_the_way = ConditionsOfTheLoad(kernel, MaskedLanes::kLeftOut);
  sum.lane_limit = Bound{te::Index(sum.loops.back().axis), 1};
  EXPECT_EQ(ConditionsOfTheLoad(kernel, MaskedLanes::kLeftOut), on_the_way + 1);
  sum.strategy = ScalarLoops{};
  EXPECT_EQ(ConditionsOfTheLoad(kernel, MaskedLanes::kComputed), on_the_way + 1);
  sum.strategy = VectorMap{sum.loops.back().axis.id};
  EXPECT_EQ(ConditionsOfTheLoad(kernel, MaskedLanes::kComputed), on_the_way);
}

TEST(RingAccesses, ResultsThatAreNotStoredAreComputedInTiles) {
  Kernel kernel = testing::SlidingSums();
  Step& sum = kernel.phases[0].steps[1];
  const size_t on_the_way = ConditionsOfTheLoad(kernel, MaskedLanes::kLeftOut);
  RegisterTile tile;
  tile.store_limit = Bound{te::Index(sum.loops.back().axis), 1};
  sum.strategy = tile;
  EXPECT_EQ(ConditionsOfTheLoad(kernel, MaskedLanes::kLeftOut), on_the_way + 1);
  EXPECT_EQ(ConditionsOfTheLoad(kernel, MaskedLanes::kComputed), on_the_way);
}

}  // namespace
}  // namespace fusion::movement
