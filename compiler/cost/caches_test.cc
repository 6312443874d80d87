#include "compiler/cost/caches.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(Caches, MainMemoryIsNone) {
  DeviceModel device;
  device.memory = {{"L1", 32 << 10, 2e11, false},
                   {"L2", 1 << 20, 7e10, false},
                   {"L3", 32 << 20, 3e10, true},
                   {"DRAM", 0, 1e10, true}};
  EXPECT_EQ(LargestPrivateBytes(device), 1 << 20);
  EXPECT_EQ(LargestCacheBytes(device), 32 << 20);
  EXPECT_TRUE(FillsCaches(8 << 20, device));
  EXPECT_FALSE(FillsCaches((8 << 20) - 1, device));
}

TEST(Caches, OfAModelThatNamesNone) {
  const DeviceModel device;
  EXPECT_EQ(LargestPrivateBytes(device), 0);
  EXPECT_EQ(LargestCacheBytes(device), 0);
  EXPECT_TRUE(FillsCaches(1, device));
}

}  // namespace
}  // namespace fusion
