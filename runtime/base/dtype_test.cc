#include "runtime/base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace fusion {
namespace {

TEST(DTypeTest, NamesRoundTrip) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
  }
  EXPECT_FALSE(ParseDType("f31").has_value());
}

TEST(DTypeTest, EveryHalfRoundTripsThroughFloat) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(FloatToHalf(value), bits);
  }
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);               // first value that rounds to infinity
  EXPECT_EQ(FloatToHalf(1.0f + 1.0f / 2048), 0x3c00);     // tie to even
  EXPECT_EQ(FloatToBFloat16(1.0f + 1.0f / 256), 0x3f80);  // tie to even
}

}  // namespace
}  // namespace fusion
