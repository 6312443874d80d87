#include "compiler/schedule/stitch/picked_weights.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::GroupDevice;
using testing::ParseTe;

// Each of some tokens times the weights of one kind: 256 terms.
te::Program Experts(int tokens, int kinds, int columns = 512) {
  return ParseTe(absl::StrFormat(R"(te p(%%0: f32[%1$d, 256], %%1: i64[%1$d], %%2: f32[%2$d, 256, %4$d]) {
  %%3[i0<%1$d, i1<%4$d]: f32 = sum.f32(i2<256) mul(%%0[i0, i2], %%2[%%1[i0]{0..%3$d}, i2, i1])
  return %%3
})",
                                 tokens, kinds, kinds - 1, columns));
}

std::optional<PickedColumns> Columns(const te::Program& program, const DeviceModel& device = Device()) {
  return ColumnsOfPickedWeights(program, program.tes.at(0), device);
}

// The core keeps three quarters of 1 MiB.
TEST(PickedWeights, ColumnsOfAllKindsStayInTheCache) {
  const te::Program experts = Experts(128, 16);
  const std::optional<PickedColumns> columns = Columns(experts);
  ASSERT_TRUE(columns);
  EXPECT_EQ(columns->axis.id, experts.tes[0].axes[1].id);
  EXPECT_EQ(columns->block, 32) << "16 KiB each";
  EXPECT_EQ(Columns(Experts(128, 4))->block, 128);
  EXPECT_EQ(Columns(Experts(8, 4))->block, 128) << "each kind twice";
  EXPECT_EQ(Columns(Experts(128, 4, 384))->block, 192) << "all that the core keeps";
  EXPECT_EQ(Columns(Experts(128, 4, 720))->block, 144) << "a fifth: tasks have the same loops";
}

TEST(PickedWeights, OtherwiseTasksTakeTheirTokens) {
  EXPECT_FALSE(Columns(Experts(4, 4))) << "hardly any kind is picked again";
  EXPECT_FALSE(Columns(Experts(16, 64))) << "nor here: there are more kinds than tokens";
  EXPECT_FALSE(Columns(Experts(512, 64))) << "a vector of columns is 1 MiB";
  EXPECT_FALSE(Columns(Experts(128, 16, 520))) << "no whole vectors";
  EXPECT_FALSE(Columns(Experts(128, 1))) << "all weights fit";
  EXPECT_FALSE(Columns(Experts(128, 16), GroupDevice())) << "its tasks share memory of a fixed size";
}

TEST(PickedWeights, ColumnsOfOneOperandAlone) {
  EXPECT_FALSE(Columns(ParseTe(R"(te p(%0: f32[128, 512, 256], %1: i64[128], %2: f32[16, 256, 512]) {
  %3[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i1, i2], %2[%1[i0]{0..15}, i2, i1])
  return %3
})"))) << "the other operand moves with the columns, too";
  EXPECT_FALSE(Columns(ParseTe(R"(te p(%0: f32[128, 256], %2: f32[128, 256, 512]) {
  %3[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %2[i0, i2, i1])
  return %3
})"))) << "nothing is picked";
}

}  // namespace
}  // namespace fusion
