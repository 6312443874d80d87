#include "compiler/schedule/stitch/worth_halos.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/targets/target_strategy.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::GroupDevice;
using testing::ParseTe;

// Windows of `taps` elements over rows of a map.
te::Program Windows(int64_t rows, int64_t taps) {
  const std::string shape = absl::StrCat(rows, ", 64");
  return ParseTe(absl::StrCat("te p(%0: f32[", shape, "]) {\n  %1[i0<", rows,
                              ", i1<64]: f32 = exp(%0[i0, i1])\n  %2[i2<", rows, ", i3<64]: f32 = sum.f32(i4<", taps,
                              ") %1[i2 + i4 - 1, i3]?0.0\n  return %2\n}"));
}

// The core's own cache has 1 MiB, and three quarters of it are 3,072 rows.
TEST(WorthHalos, WindowsOfATensorThatLeavesTheCache) {
  EXPECT_EQ(WorthHalos(Windows(4096, 3), Device()), StrategyOf(Device()).halos_by_price);
  EXPECT_FALSE(WorthHalos(Windows(3000, 3), Device())) << "stays in the cache between two kernels";
  EXPECT_FALSE(WorthHalos(Windows(4096, 3), GroupDevice())) << "nothing was measured";
}

TEST(WorthHalos, AReductionOfWholeRowsHasNoHalo) {
  EXPECT_FALSE(WorthHalos(ParseTe(R"(te p(%0: f32[8192, 64]) {
  %1[i0<8192, i1<64]: f32 = exp(%0[i0, i1])
  %2[i2<8192]: f32 = max.f32(i3<64) %1[i2, i3]
  return %2
})"),
                          Device()));
}

// The window is over the kernel's input, which no stage makes.
TEST(WorthHalos, AnInputIsNoHandOver) {
  EXPECT_FALSE(WorthHalos(ParseTe(R"(te p(%0: f32[8192, 64]) {
  %1[i0<8192, i1<64]: f32 = sum.f32(i2<3) %0[i0 + i2 - 1, i1]?0.0
  return %1
})"),
                          Device()));
}

}  // namespace
}  // namespace fusion
