#include "compiler/schedule/rewrite/separate_windows.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/schedule/testing/same_results.h"

namespace fusion {
namespace {

// `rows`: extents of the rows between two reductions, innermost reduction first.
void ExpectSeparated(const std::string& text, const std::vector<Shape>& rows) {
  const absl::StatusOr<te::Program> whole = te::Parse(text);
  ASSERT_TRUE(whole.ok()) << whole.status();
  const std::optional<SeparatedProgram> separated = SeparateWindows(*whole, {});
  ASSERT_EQ(separated.has_value(), !rows.empty()) << text;
  if (rows.empty()) return;
  EXPECT_TRUE(te::Verify(separated->program).ok())
      << te::Verify(separated->program) << te::Print(separated->program);
  ASSERT_EQ(separated->program.tes.size(), rows.size() + 1);
  for (size_t r = 0; r < rows.size(); ++r) {
    EXPECT_EQ(separated->program.tensors[separated->program.tes[r].outputs[0]].shape, rows[r]);
    EXPECT_EQ(separated->program.tes[r].reduction->axes.size(), 1u);
  }
  ExpectSameResults(*whole, separated->program);
}

TEST(SeparateWindows, APaddedMaximum) {
  ExpectSeparated(R"(te p(%0: f32[2, 3, 9, 11]) {
  %1[i0<2, i1<3, i2<9, i3<11]: f32 = max.f32(i4<5, i5<5) %0[i0, i1, i2 + i4 - 2, i3 + i5 - 2]?-inf
  return %1
})", {{2, 3, 13, 11}});
}

TEST(SeparateWindows, ASumWithStrideAndWhatFollowsIt) {
  ExpectSeparated(R"(te p(%0: f32[2, 20, 23]) {
  %1[i0<2, i1<6, i2<7]: f32 = sum.f32(i3<9, i4<9) %0[i0, 2*i1 + i3, 2*i2 + i4] then (mul(acc0, 2.0))
  return %1
})", {{2, 19, 7}});
}

TEST(SeparateWindows, ThreeDimensions) {
  ExpectSeparated(R"(te p(%0: f32[12, 12, 12]) {
  %1[i0<8, i1<8, i2<8]: f32 = min.f32(i3<5, i4<5, i5<5) %0[i0 + i3, i1 + i4, i2 + i5]
  return %1
})", {{12, 12, 8}, {12, 8, 8}});
}

TEST(SeparateWindows, WindowsThatShareNothingStay) {
  ExpectSeparated(R"(te p(%0: f32[12, 12]) {
  %1[i0<4, i1<4]: f32 = max.f32(i2<3, i3<3) %0[3*i0 + i2, 3*i1 + i3]
  return %1
})", {});
}

TEST(SeparateWindows, AProductAndADiagonalStay) {
  ExpectSeparated(R"(te p(%0: f32[12, 12], %1: f32[5, 5]) {
  %2[i0<8, i1<8]: f32 = sum.f32(i2<5, i3<5) mul(%0[i0 + i2, i1 + i3], %1[i2, i3])
  return %2
})", {});
  ExpectSeparated(R"(te p(%0: f32[17, 12]) {
  %1[i0<8, i1<8]: f32 = max.f32(i2<5, i3<5) %0[i0 + i2 + i3, i1 + i3]
  return %1
})", {});
}

}  // namespace
}  // namespace fusion
