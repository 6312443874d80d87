#include "compiler/schedule/library/library_nest.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;

bool IsPlain(const std::string& te) {
  DraftedProgram drafted(
      absl::StrCat("te p(%0: f32[64, 64], %1: f32[64, 64], %2: f32[64]) {\n  ", te, "\n  return %3\n}"));
  return IsPlainSumOfProducts(drafted.NestOf());
}

TEST(LibraryNest, PlainSumsOfProducts) {
  EXPECT_TRUE(IsPlain("%3[i0<64, i1<64]: f32 = sum.f32(i2<64) mul(%0[i0, i2], %1[i2, i1])"));
  EXPECT_TRUE(IsPlain("%3[i0<64, i1<64]: f32 = sum.f32(i2<64) mul(%0[i0, i2], %1[i2, i1]) then (add(acc0, %2[i1]))"));
  EXPECT_FALSE(IsPlain("%3[i0<64, i1<64]: f32 = max.f32(i2<64) mul(%0[i0, i2], %1[i2, i1])"));
  EXPECT_FALSE(IsPlain("%3[i0<64, i1<64]: f32 = sum.f32(i2<64) add(%0[i0, i2], %1[i2, i1])"));
  EXPECT_FALSE(IsPlain("%3[i0<64, i1<64]: f32 = sum.f32(i2<64 if i2 < i1) mul(%0[i0, i2], %1[i2, i1])"));
  EXPECT_FALSE(IsPlain("%3[i0<64, i1<64]: f32 = mul(%0[i0, i1], %1[i0, i1])"));
}

TEST(LibraryNest, ItsPhaseIsOneStepWithoutAGrid) {
  DraftedProgram drafted(R"(te p(%0: f32[64, 64], %1: f32[64, 64]) {
  %2[i0<64, i1<64]: f32 = sum.f32(i2<64) mul(%0[i0, i2], %1[i2, i1])
  return %2
})");
  const Nest nest = drafted.NestOf();
  LibraryProduct call;
  call.m = 64;
  const movement::Phase phase = PhaseOf(nest, call);
  EXPECT_TRUE(phase.grid.empty());
  ASSERT_EQ(phase.steps.size(), 1u);
  EXPECT_TRUE(phase.steps[0].Is<LibraryCall>());
  EXPECT_EQ(phase.steps[0].loops.size(), nest.axes.size()) << "the loops say what the call computes";
  ASSERT_NE(movement::LibraryCallOf(phase), nullptr);
}

TEST(LibraryNest, APaddedLoadIsNoPlainOne) {
  const te::Axis axis{0, 8};
  const te::Scalar load = te::Load(0, DType::kF32, {te::Index(axis)});
  EXPECT_EQ(PlainLoad(load), load.get());
  EXPECT_EQ(PlainLoad(te::Load(0, DType::kF32, {te::Index(axis)}, te::Imm(DType::kF32, 0))), nullptr);
  EXPECT_EQ(PlainLoad(load * load), nullptr);
}

}  // namespace
}  // namespace fusion
