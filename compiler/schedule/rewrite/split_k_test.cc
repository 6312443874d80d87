#include "compiler/schedule/rewrite/split_k.h"

#include <gtest/gtest.h>

#include "compiler/schedule/testing/same_results.h"

namespace fusion {
namespace {

DeviceModel Device(int group, int units) {
  DeviceModel device;
  device.kind = "opencl";
  device.work_group_size = group;
  device.parallel_units = units;
  device.memory = {{"local", 48 << 10, 1e12, false}, {"global", 0, 1e11, true}};
  return device;
}

// 512 × 64 results are sixteen tiles of 128 work-items.
te::Program Product() {
  absl::StatusOr<te::Program> program = te::Parse(R"(te p(%0: f32[512, 768], %1: f32[768, 64] const, %2: f32[64]) {
  %3[i0<512, i1<64]: f32 = sum.f32(i2<768) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))
  return %3
})");
  return std::move(program).value();
}

TEST(SplitK, AsManyPartsAsFillTheUnits) {
  EXPECT_FALSE(SplitK(Product(), Device(1, 64)).has_value());
  EXPECT_FALSE(SplitK(Product(), Device(128, 1)).has_value());
  for (const auto& [units, parts] : {std::pair(4, 2), std::pair(8, 4), std::pair(64, 8)}) {  // 8 of 96; 48 is too short
    const auto spread = SplitK(Product(), Device(128, units));
    ASSERT_TRUE(spread.has_value()) << units;
    ASSERT_EQ(spread->tes.size(), 2u);
    EXPECT_TRUE(te::Verify(*spread).ok()) << te::Verify(*spread) << te::Print(*spread);
    EXPECT_EQ(spread->tes[0].axes[0].extent, parts) << units;
    EXPECT_EQ(spread->tes[0].reduction->axes[0].extent * parts, 768);
  }
}

TEST(SplitK, ComputesTheSame) {
  const te::Program whole = Product();
  const auto spread = SplitK(whole, Device(128, 64));
  ASSERT_TRUE(spread.has_value());
  ExpectSameResults(whole, *spread);
}

}  // namespace
}  // namespace fusion
