#include "compiler/schedule/vector/streaming_stores.h"

#include <gtest/gtest.h>

#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::Stages;

TEST(StreamingStores, ResultsBeyondAllCachesMayBe) {
  DeviceModel device = Device();
  device.memory.insert(device.memory.begin() + 2, {"L3", 32 << 20, 3e10, true});
  const auto store = [&](int elements, int choice) {
    ScheduleOptions options;
    options.choices = {{"streaming", choice}};
    const ScheduledFusionBlock scheduled =
        ScheduleFusionBlock(
            Stages(absl::StrFormat("te p(%%0: f32[%d]) {\n  %%1[i0<%d]: f32 = max(%%0[i0], 0.0)\n  return %%1\n}",
                                   elements, elements)),
            {}, device, options)
            .value();
    return movement::HasStreamingStores(scheduled.kernel.phases.at(0).steps[0]);
  };
  EXPECT_FALSE(store(2 << 20, 0));
  EXPECT_TRUE(store(2 << 20, 1));  // 8 MiB, a quarter of the largest cache
  EXPECT_FALSE(store(1 << 20, 1));
}

}  // namespace
}  // namespace fusion
