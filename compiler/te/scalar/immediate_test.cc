#include "compiler/te/scalar/immediate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion::te {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

TEST(WrapInt, IsTwosComplementOfTheTypesWidth) {
  EXPECT_EQ(WrapInt(DType::kI8, 128), -128);
  EXPECT_EQ(WrapInt(DType::kI8, -129), 127);
  EXPECT_EQ(WrapInt(DType::kU8, -1), 255);
  EXPECT_EQ(WrapInt(DType::kI16, 0x18000), -32768);
  EXPECT_EQ(WrapInt(DType::kU16, 65536), 0);
  EXPECT_EQ(WrapInt(DType::kI32, int64_t{1} << 31), -(int64_t{1} << 31));
  EXPECT_EQ(WrapInt(DType::kU32, -1), 4294967295);
  EXPECT_EQ(WrapInt(DType::kI64, kLeast), kLeast);
  EXPECT_EQ(WrapInt(DType::kU64, -1), -1) << "keeps its bits";
  EXPECT_EQ(WrapInt(DType::kI4, 8), -8);
  EXPECT_EQ(WrapInt(DType::kU4, 17), 1);
  EXPECT_EQ(WrapInt(DType::kBool, -5), 1);
}

TEST(DoubleToInt, TruncatesAndSaturatesAt64Bits) {
  EXPECT_EQ(DoubleToInt(DType::kI32, -2.9), -2);
  EXPECT_EQ(DoubleToInt(DType::kI64, 1e300), kMost);
  EXPECT_EQ(DoubleToInt(DType::kI64, -kInfinity), kLeast);
  EXPECT_EQ(DoubleToInt(DType::kI64, std::ldexp(1.0, 63)), kMost);
  EXPECT_EQ(static_cast<uint64_t>(DoubleToInt(DType::kU64, std::ldexp(1.0, 63))), uint64_t{1} << 63);
  EXPECT_EQ(DoubleToInt(DType::kU64, kInfinity), -1);
  EXPECT_EQ(DoubleToInt(DType::kI64, std::nan("")), 0);
  EXPECT_EQ(DoubleToInt(DType::kBool, 0.25), 1);
  EXPECT_EQ(DoubleToInt(DType::kI8, 300), 44);
}

TEST(IsExactIn, EdgesOfEachType) {
  EXPECT_TRUE(IsExactIn(DType::kF32, 16777216));
  EXPECT_FALSE(IsExactIn(DType::kF32, 16777217));
  EXPECT_TRUE(IsExactIn(DType::kF32, std::ldexp(1.0, -149)));
  EXPECT_FALSE(IsExactIn(DType::kF32, std::ldexp(1.0, -150)));
  EXPECT_FALSE(IsExactIn(DType::kF32, 1e39));
  EXPECT_TRUE(IsExactIn(DType::kF16, 65504));
  EXPECT_FALSE(IsExactIn(DType::kF16, 65505));
  EXPECT_FALSE(IsExactIn(DType::kF16, 65536));
  EXPECT_TRUE(IsExactIn(DType::kF16, std::ldexp(1.0, -24)));
  EXPECT_FALSE(IsExactIn(DType::kF16, std::ldexp(1.0, -25)));
  EXPECT_TRUE(IsExactIn(DType::kBF16, 256));
  EXPECT_FALSE(IsExactIn(DType::kBF16, 257));
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    EXPECT_TRUE(IsExactIn(dtype, kInfinity)) << DTypeName(dtype);
    EXPECT_TRUE(IsExactIn(dtype, std::nan(""))) << DTypeName(dtype);
    EXPECT_TRUE(IsExactIn(dtype, -0.0)) << DTypeName(dtype);
  }
}

TEST(Imm, IsOfItsType) {
  EXPECT_TRUE(IsImm(Imm(DType::kI32, -2.9), -2));
  EXPECT_TRUE(IsImm(ImmInt(DType::kF32, 3), 3));
  EXPECT_FALSE(IsImm(Imm(DType::kF32, 3), 4));
}

}  // namespace
}  // namespace fusion::te
