#include "compiler/launch/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/bundle/buffer_footprint.h"

namespace fusion {
namespace {

int64_t Footprint(const ArenaItem& item) { return BufferFootprint(item.size_bytes); }

// Checks that items alive at the same time do not overlap in memory, slack included. Returns the bytes alive at the
// worst launch, which are a lower bound.
int64_t Check(const std::vector<ArenaItem>& items, int64_t arena) {
  int64_t bound = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].offset % kBufferAlignBytes, 0);
    EXPECT_GE(items[i].offset, 0);
    EXPECT_LE(items[i].offset + Footprint(items[i]), arena);
    int64_t alive = 0;
    for (size_t j = 0; j < items.size(); ++j) {
      if (items[j].first <= items[i].first && items[i].first <= items[j].last) alive += Footprint(items[j]);
      if (i == j || items[j].last < items[i].first || items[i].last < items[j].first) continue;
      EXPECT_TRUE(items[i].offset + Footprint(items[i]) <= items[j].offset ||
                  items[j].offset + Footprint(items[j]) <= items[i].offset)
          << i << " and " << j << " overlap";
    }
    bound = std::max(bound, alive);
  }
  return bound;
}

TEST(PlanArena, ChainNeedsTwoBuffers) {
  std::vector<ArenaItem> items;
  for (int i = 0; i < 10; ++i) items.push_back({1000, i, i + 1});
  const int64_t arena = PlanArena(&items);
  EXPECT_EQ(arena, 2 * Footprint(items[0]));
  Check(items, arena);
}

TEST(PlanArena, NothingAndEmptyTensors) {
  std::vector<ArenaItem> items;
  EXPECT_EQ(PlanArena(&items), 0);
  items = {{0, 0, 3}, {0, 1, 2}, {64, 0, 3}};
  Check(items, PlanArena(&items));
}

// Whole pages each: a kernel that reads some and writes another never stores just ahead of what it loads next.
TEST(PlanArena, LargeBuffersBeginApartWithinAPage) {
  std::vector<ArenaItem> items(8, {int64_t{1} << 20, 0, 1});
  const int64_t arena = PlanArena(&items);
  Check(items, arena);
  EXPECT_LT(arena, 8 * ((int64_t{1} << 20) + kStoreMatchBytes + kBufferAlignBytes));
  for (size_t i = 0; i < items.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const int64_t apart = items[i].offset - items[j].offset;
      EXPECT_GE(apart % kStoreMatchBytes, 512) << "buffer " << i << " behind buffer " << j;
      EXPECT_LE(apart % kStoreMatchBytes, kStoreMatchBytes - 192) << "buffer " << i << " ahead of buffer " << j;
    }
  }
}

TEST(PlanArena, RandomGraphsStayNearTheBound) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaItem> items;
    const int count = 1 + static_cast<int>(random() % 60);
    for (int i = 0; i < count; ++i) {
      const int first = static_cast<int>(random() % 40);
      items.push_back({static_cast<int64_t>(random() % 5000), first, first + static_cast<int>(random() % 8)});
    }
    const int64_t arena = PlanArena(&items);
    const int64_t bound = Check(items, arena);
    EXPECT_LE(arena, 2 * bound);
  }
}

}  // namespace
}  // namespace fusion
