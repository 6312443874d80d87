#include "compiler/plan/planners/graph_turbo/lowering/memory_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::graph_turbo {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(Waits, KeepTheLastInstructionOfEachEngine) {
  Waits waits;
  waits.Add(1, 5);
  waits.Add(2, 3);
  waits.Add(1, 4);
  Waits more;
  more.Add(2, 9);
  waits.Merge(more);
  EXPECT_THAT(waits.list(), UnorderedElementsAre(Pair(1, 5), Pair(2, 9)));
}

TEST(MemorySpace, RefusesWhatHasNoRoom) {
  MemorySpace space(128);
  const auto a = space.Allocate(33);
  ASSERT_TRUE(a);
  EXPECT_EQ(a->bytes, 64);
  EXPECT_EQ(space.LargestFree(), 64);
  EXPECT_FALSE(space.Allocate(65));
  const auto b = space.Allocate(64);
  ASSERT_TRUE(b);
  EXPECT_EQ(b->offset, 64);
  EXPECT_FALSE(space.Allocate(1));
}

TEST(MemorySpace, ANewOwnerWaitsForTheOldOnesOfItsAddressesAlone) {
  MemorySpace space(128);
  const auto a = space.Allocate(64), b = space.Allocate(64);
  Waits of_a, of_b;
  of_a.Add(0, 1);
  of_b.Add(0, 2);
  space.Free(*a, of_a);
  space.Free(*b, of_b);
  EXPECT_EQ(space.LargestFree(), 128);
  const auto c = space.Allocate(32);
  EXPECT_THAT(c->before.list(), UnorderedElementsAre(Pair(0, 1)));
  const auto d = space.Allocate(96);
  ASSERT_TRUE(d);
  EXPECT_EQ(d->offset, 32);
  EXPECT_THAT(d->before.list(), UnorderedElementsAre(Pair(0, 2)));
}

}  // namespace
}  // namespace fusion::graph_turbo
