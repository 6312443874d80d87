#include "compiler/schedule/rewrite/blocked_transpose.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/movement/print.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::Schedule;

// Tiles are transposed in registers whatever the element type is; results are written past the caches only where the
// caches would not hold them.
TEST(BlockedTranspose, TilesOfATransposition) {
  const auto step = [](const char* type, int64_t rows, int64_t columns) {
    DeviceModel device = Device();
    device.memory.insert(device.memory.end() - 1, {"L3", 32 << 20, 2e10, true});
    const ScheduledFusionBlock block =
        Schedule(absl::StrCat("te p(%0: ", type, "[", rows, ", ", columns, "]) {\n  %1[i0<", columns, ", i1<", rows,
                              "]: ", type, " = %0[i1, i0]\n  return %1\n}"),
                 {}, device);
    return block.kernel.phases.at(0).steps.at(0);
  };
  for (const char* type : {"f32", "f16", "u8", "bool", "i32"}) {
    EXPECT_TRUE(step(type, 256, 3136).Is<movement::BlockedTranspose>()) << type;
  }
  EXPECT_TRUE(step("i64", 256, 3136).Is<movement::ScalarLoops>());
  EXPECT_FALSE(movement::HasStreamingStores(step("f32", 256, 3136)));
  EXPECT_TRUE(movement::HasStreamingStores(step("f32", 4096, 4096)));
}

// Lines that several rows of the result read stay in the nearest cache until the last of them has: a block has all
// rows.
TEST(BlockedTranspose, RowsThatShareTheirLines) {
  const auto axes_of = [](int64_t rows, int64_t columns) {
    const ScheduledFusionBlock block =
        Schedule(absl::StrCat("te p(%0: f32[", rows, ", ", columns, "]) {\n  %1[i0<", columns, ", i1<", rows,
                              "]: f32 = %0[i1, i0]\n  return %1\n}"));
    const movement::Phase& phase = block.kernel.phases.at(0);
    EXPECT_TRUE(phase.steps.at(0).Is<movement::VectorMap>()) << movement::Print(block.kernel);
    return phase.grid.size() + phase.steps[0].loops.size();
  };
  EXPECT_EQ(axes_of(8192, 7), 3u);
  EXPECT_EQ(axes_of(128, 7), 2u);  // all of it stays
}

}  // namespace
}  // namespace fusion
