#include "compiler/schedule/nest/form_stages.h"

#include <gtest/gtest.h>

#include <string>

#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Stages;

// Three parts of 64, 128 and 64 channels, each through its own expression.
const char kParts[] = R"(te p(%0: f32[1, 64, 28, 28], %1: f32[1, 128, 28, 28], %2: f32[1, 64, 28, 28]) {
  %3[i0<1, i1<64, i2<28, i3<28]: f32 = max(0.0, %0[i0, i1, i2, i3])
  %4[i4<1, i5<128, i6<28, i7<28]: f32 = max(0.0, %1[i4, i5, i6, i7])
  %5[i8<1, i9<64, i10<28, i11<28]: f32 = exp(%2[i8, i9, i10, i11])
  %6[i12<1, i13<256, i14<28, i15<28]: f32 = if i13 < 64 then %3[i12, i13, i14, i15] else if i13 < 192 then %4[i12, i13 - 64, i14, i15] else %5[i12, i13 - 192, i14, i15]
  return %6
})";

TEST(FormStages, ChainOfMapsIsOneStage) {
  const te::Program p = Stages(R"(te p(%0: f32[8, 32], %1: f32[32]) {
  %2[i0<8, i1<32]: f32 = add(%0[i0, i1], %1[i1])
  %3[i2<8, i3<32]: f32 = exp(%2[i2, i3])
  %4[i4<8, i5<32]: f32 = mul(%3[i4, i5], %2[i4, i5])
  return %4
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, CostlyMapReadOftenIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<32]: f32 = exp(%0[i0])
  %2[i1<100, i2<32]: f32 = mul(%1[i2], 2.0)
  return %2
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, CheapMapReadOftenIsRecomputed) {
  const te::Program p = Stages(R"(te p(%0: f32[50, 32]) {
  %1[i0<50, i1<32]: f32 = add(%0[i0, i1], 1.0)
  %2[i2<50, i3<32]: f32 = exp(add(%1[i2, i3], %1[49 - i2, i3]))
  return %2
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

// Substituting any of these would double the expressions of the last.
TEST(FormStages, MapReadAtSeveralPlacesIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<31]: f32 = div(%0[i0], add(%0[i0 + 1], 3.0))
  %2[i1<30]: f32 = div(%1[i1], add(%1[i1 + 1], 3.0))
  %3[i2<29]: f32 = div(%2[i2], add(%2[i2 + 1], 3.0))
  return %3
})");
  EXPECT_EQ(p.tes.size(), 3u) << te::Print(p);
}

TEST(FormStages, OfTwoBranchesOneReads) {
  const te::Program p = Stages(R"(te p(%0: f32[32]) {
  %1[i0<32]: f32 = exp(%0[i0])
  %2[i1<33]: f32 = if i1 < 20 then %1[i1] else %1[i1 - 1]
  return %2
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, ComputedOperandOfAProductIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64]) {
  %2[i0<16, i1<32]: f32 = exp(%0[i0, i1])
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%2[i2, i4], %1[i4, i3])
  return %3
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, MovedOperandOfAProductIsRead) {
  const te::Program p = Stages(R"(te p(%0: f32[32, 16], %1: f32[32, 64]) {
  %2[i0<16, i1<32]: f32 = %0[i1, i0]
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%2[i2, i4], %1[i4, i3])
  return %3
})");
  EXPECT_EQ(p.tes.size(), 1u) << te::Print(p);
}

TEST(FormStages, MapAfterAReductionIsItsEpilogue) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64], %2: f32[64]) {
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  %4[i5<16, i6<64]: f32 = erf(add(%3[i5, i6], %2[i6]))
  %5[i7<4, i8<16, i9<16]: f32 = %4[i8, 16*i7 + i9]
  return %5
})");
  ASSERT_EQ(p.tes.size(), 1u) << te::Print(p);
  EXPECT_FALSE(p.tes[0].IsMap());
  EXPECT_EQ(p.tes[0].axes.size(), 3u);
}

// A convolution, its bias, and a pooling whose windows read each element once.
TEST(FormStages, EpilogueStaysWithItsReductionWhereAnotherReductionReadsOn) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64], %2: f32[64]) {
  %3[i0<16, i1<64]: f32 = sum.f32(i2<32) mul(%0[i0, i2], %1[i2, i1])
  %4[i3<16, i4<64]: f32 = add(%3[i3, i4], %2[i4])
  %5[i5<8, i6<64]: f32 = max.f32(i7<2) %4[2*i5 + i7, i6]
  return %5
})");
  ASSERT_EQ(p.tes.size(), 2u) << te::Print(p);
  EXPECT_EQ(p.tes[0].outputs[0], 4) << te::Print(p);
  EXPECT_FALSE(p.tes[0].then.empty());
  EXPECT_EQ(p.tes[1].body[0]->kind, te::ScalarKind::kLoad);
}

TEST(FormStages, ExpandedReductionIsNotRecomputed) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32]) {
  %1[i0<16]: f32 = sum.f32(i1<32) %0[i0, i1]
  %2[i2<16, i3<32]: f32 = div(%0[i2, i3], %1[i2])
  return %2
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, ResultReadInsideStaysAResult) {
  const te::Program p = Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 64]) {
  %3[i2<16, i3<64]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  %4[i5<16, i6<64]: f32 = erf(%3[i5, i6])
  return %3, %4
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, IndexTensorIsStored) {
  const te::Program p = Stages(R"(te p(%0: f32[9, 2], %1: i64[3]) {
  %2[i0<3]: i64 = add(%1[i0], 1:i64)
  %3[i1<3, i2<2]: f32 = %0[%2[i1]{0..8}, i2]
  return %3
})");
  EXPECT_EQ(p.tes.size(), 2u) << te::Print(p);
}

TEST(FormStages, ScalarConstantBecomesAnImmediate) {
  const te::Program p = Stages(R"(te p(%0: f32[9], %1: f32[] const {0.5}) {
  %2[i0<9]: f32 = mul(%0[i0], %1[])
  return %2
})");
  EXPECT_NE(te::Print(p).find("mul(%0[i0], 0.5)"), std::string::npos) << te::Print(p);
}

TEST(FormStages, PartsOfAConcatAreComputedWhereTheyGo) {
  EXPECT_EQ(Stages(kParts).tes.size(), 1u);  // though each is read at a quarter of the points, or half
}

}  // namespace
}  // namespace fusion
