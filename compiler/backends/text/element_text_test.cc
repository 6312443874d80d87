#include "compiler/backends/text/element_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/te/scalar/immediate.h"

namespace fusion::text {
namespace {

std::string Imm(DType dtype, double value) { return ImmText(*te::Imm(dtype, value)); }

TEST(ImmText, FloatsAreExactAndStandAlone) {
  EXPECT_EQ(Imm(DType::kF32, 0.5), "0x1p-1f");
  EXPECT_EQ(Imm(DType::kF32, -0.5), "(-0x1p-1f)") << "behind a minus, it would be a decrement";
  EXPECT_EQ(Imm(DType::kF32, -0.0), "(-0x0p+0f)");
  EXPECT_EQ(Imm(DType::kF64, 0.1), "0x1.999999999999ap-4");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Imm(DType::kF32, infinity), "(inf_f32)");
  EXPECT_EQ(Imm(DType::kF16, -infinity), "(-inf_f32)") << "halves are computed in f32";
  EXPECT_EQ(Imm(DType::kF64, -infinity), "(-inf_f64)");
  EXPECT_EQ(Imm(DType::kF32, std::nan("")), "nan_f32");
  EXPECT_EQ(Imm(DType::kF32, 1e300), "inf_f32") << "rounds to infinity";
}

TEST(ImmText, IntegersHaveTheirTypeAndNoSign) {
  EXPECT_EQ(Imm(DType::kI64, -1), "(i64)18446744073709551615UL");
  EXPECT_EQ(ImmText(*te::ImmInt(DType::kI64, std::numeric_limits<int64_t>::min())), "(i64)9223372036854775808UL");
  EXPECT_EQ(Imm(DType::kU8, 200), "(u8)200UL");
  EXPECT_EQ(Imm(DType::kI4, 3), "(i8)3UL");
  EXPECT_EQ(Imm(DType::kBool, 1), "true");
}

const te::Axis kI{0, 10}, kJ{1, 6};
const movement::Kernel kKernel;
std::string Name(int axis) { return absl::StrCat("i", axis); }

TEST(IndexText, DivisionsOfWhatMayBeNegativeRoundDown) {
  EXPECT_EQ(IndexText(te::FloorDiv(te::Index(kI) + kJ, 4), Name, kKernel), "((i0 + i1)/4)");
  EXPECT_EQ(IndexText(te::FloorDiv(te::Index(kI) - kJ, 4), Name, kKernel), "fdiv(i0 + -1L*i1, 4)");
  EXPECT_EQ(IndexText(te::Mod(te::Index(kI) - kJ, 4), Name, kKernel), "fmodi(i0 + -1L*i1, 4)");
  EXPECT_EQ(IndexText(te::Index(kI) * 1000000 + 5, Name, kKernel), "1000000L*i0 + 5L") << "64 bits";
  EXPECT_EQ(IndexText(te::Index(0), Name, kKernel), "0L");
  EXPECT_EQ(IndexText(te::Index::Load(3, {te::Index(kI)}, {0, 9}), Name, kKernel), "(i64)b3[i0]");
}

TEST(PredText, IsAConjunction) {
  EXPECT_EQ(PredText({}, Name, kKernel), "true");
  EXPECT_EQ(PredText({{kI, te::Cmp::kLt, 5}, {kJ, te::Cmp::kNe, kI}}, Name, kKernel), "(i0) < (5L) && (i1) != (i0)");
}

TEST(ElementText, HowTypesLieInMemory) {
  movement::Buffer half{Scope::kKernel, DType::kF16}, truth{Scope::kBlock, DType::kBool},
      byte_float{Scope::kKernel, DType::kF8E4M3FN}, plain{Scope::kKernel, DType::kI16};
  EXPECT_EQ(LoadText(half, "p[0]"), "h2f(p[0])");
  EXPECT_EQ(StoreText(half, "p[0]", "x"), "p[0] = f2h(x);");
  EXPECT_EQ(LoadText(truth, "p[0]"), "(p[0] != 0)") << "a byte may hold more than a truth";
  EXPECT_EQ(StoreText(truth, "p[0]", "x"), "p[0] = (u8)(x);");
  EXPECT_EQ(StoreText(plain, "p[0]", "x"), "p[0] = (i16)(x);");
  EXPECT_EQ(LoadText(byte_float, "p[0]"), absl::StrCat("from_", DTypeName(DType::kF8E4M3FN), "(p[0])"));
  EXPECT_EQ(PointerType(half, true), "GLOBAL const u16*");
  EXPECT_EQ(PointerType(truth, false), "SCRATCH u8*");
}

TEST(KeptBits, ExtendTheSignOfNarrowIntegers) {
  // The text is C, whose value is computed here by its meaning.
  EXPECT_EQ(KeptBits(DType::kU4, "x"), "(u8)((x) & 15)");
  EXPECT_EQ(KeptBits(DType::kI4, "x"), "(i8)((((x) & 15) ^ 8) - 8)");
  for (int x = 0; x < 16; ++x) EXPECT_EQ(((x & 15) ^ 8) - 8, x < 8 ? x : x - 16);
}

}  // namespace
}  // namespace fusion::text
