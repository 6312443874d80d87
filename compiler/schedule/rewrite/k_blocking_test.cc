#include "compiler/schedule/rewrite/k_blocking.h"

#include <gtest/gtest.h>

#include "compiler/schedule/testing/same_results.h"

namespace fusion {
namespace {

DeviceModel Device(int64_t cache) {
  DeviceModel device;
  device.memory = {{"L1", 32 << 10, 2e11, false}, {"L2", cache, 7e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

// 16 rows of 1536 elements take 96 KB.
te::Program Product() {
  absl::StatusOr<te::Program> program = te::Parse(R"(te p(%0: f32[16, 1536], %1: f32[1536, 192] const, %2: f32[192]) {
  %3[i0<16, i1<192]: f32 = sum.f32(i2<1536) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))
  return %3
})");
  return std::move(program).value();
}

te::Program Split(const te::Program& program, const DeviceModel& device, const Choices& wanted = {}) {
  ChoiceLog choices(wanted);
  return BlockAlongK(program, device, &choices);
}

TEST(BlockAlongK, LeavesWhatFitsTheCache) { EXPECT_EQ(Split(Product(), Device(1 << 20)).tes.size(), 1u); }

TEST(BlockAlongK, SlicesFitHalfTheCache) {
  const te::Program split = Split(Product(), Device(80 << 10));
  ASSERT_EQ(split.tes.size(), 3u) << te::Print(split);
  EXPECT_TRUE(te::Verify(split).ok()) << te::Verify(split);
  for (const te::Te& te : split.tes) EXPECT_EQ(te.reduction->axes[0].extent, 512);
  EXPECT_EQ(split.tes.back().outputs, Product().tes.back().outputs);
}

TEST(BlockAlongK, PanelsOfWeightsStayWhereRowsDoNot) {
  absl::StatusOr<te::Program> program = te::Parse(R"(te p(%0: f32[1000, 6144], %1: f32[6144, 192] const) {
  %2[i0<1000, i1<192]: f32 = sum.f32(i2<6144) mul(%0[i0, i2], %1[i2, i1])
  return %2
})");
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(Split(*program, Device(32 << 20)).tes.size(), 1u);
  EXPECT_EQ(Split(*program, Device(1 << 20)).tes.size(), 3u);  // a 32 × 2048 panel takes a quarter of the cache
}

TEST(BlockAlongK, ComputesTheSame) {
  const te::Program whole = Product();
  const te::Program split = Split(whole, Device(80 << 10));
  ExpectSameResults(whole, split);
}

}  // namespace
}  // namespace fusion
