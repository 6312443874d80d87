#include "compiler/schedule/library/library_stage.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/same_results.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::DraftedProgram;
using testing::GroupDevice;
using testing::ParseTe;

constexpr char kProductAndMap[] = R"(te p(%0: f32[128, 256], %1: f32[256, 64], %2: f32[64]) {
  %3[i0<128, i1<64]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))
  return %3
})";

TEST(OnlyProduct, OneThatIsWorthAKernel) {
  EXPECT_EQ(OnlyProduct(ParseTe(kProductAndMap), Device()), 0);
  EXPECT_EQ(OnlyProduct(ParseTe("te p(%0: f32[8]) {\n  %1[i0<8]: f32 = exp(%0[i0])\n  return %1\n}"), Device()), -1);
  EXPECT_EQ(OnlyProduct(ParseTe(R"(te p(%0: f32[128, 128], %1: f32[128, 128]) {
  %2[i0<128, i1<128]: f32 = sum.f32(i2<128) mul(%0[i0, i2], %1[i2, i1])
  %3[i3<128, i4<128]: f32 = sum.f32(i5<128) mul(%2[i3, i5], %1[i5, i4])
  return %3
})"),
                        Device()),
            -1)
      << "two products";
}

TEST(WithBareProduct, WhatFollowsTheSumIsAStageOfItsOwn) {
  const te::Program whole = ParseTe(kProductAndMap);
  const std::optional<te::Program> bare = WithBareProduct(whole, 0, /*rounded=*/false);
  ASSERT_TRUE(bare.has_value());
  EXPECT_TRUE(te::Verify(*bare).ok()) << te::Verify(*bare);
  ASSERT_EQ(bare->tes.size(), 2u);
  EXPECT_TRUE(bare->tes[0].then.empty());
  EXPECT_TRUE(bare->tes[1].IsMap());
  ExpectSameResults(whole, *bare);
  EXPECT_FALSE(WithBareProduct(*bare, 0, false).has_value()) << "nothing follows the sum any more";
}

// The sum may be stored as f16 only where every use rounds it first.
TEST(WithBareProduct, RoundedWhereEveryUseRounds) {
  const auto bare = [](const char* then) {
    return WithBareProduct(ParseTe(absl::StrCat(R"(te p(%0: f16[128, 256], %1: f16[256, 64]) {
  %2[i0<128, i1<64]: f16 = sum.f32(i2<256) mul(cast.f32(%0[i0, i2]), cast.f32(%1[i2, i1])) then ()",
                                                then, ")\n  return %2\n}")),
                           0, /*rounded=*/true);
  };
  const std::optional<te::Program> rounded = bare("cast.f16(exp(cast.f32(cast.f16(acc0))))");
  ASSERT_TRUE(rounded.has_value());
  EXPECT_EQ(rounded->tensors.at(rounded->tes.at(0).outputs.at(0)).dtype, DType::kF16);
  EXPECT_FALSE(bare("cast.f16(exp(acc0))").has_value());
}

TEST(LibraryPhase, ComesFromALibraryThatTheDeviceNames) {
  const auto phase = [](DeviceModel device) {
    DraftedProgram drafted(R"(te p(%0: f32[128, 256], %1: f32[256, 64]) {
  %2[i0<128, i1<64]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])
  return %2
})",
                           device);
    return LibraryPhase(drafted.NestOf(), drafted.device, &drafted.draft.kernel, &drafted.draft.axes);
  };
  DeviceModel device = GroupDevice();
  EXPECT_EQ(phase(device).status().message(), "the device model names no library of products");
  device.product_library = "cuBLASLt of a test";
  EXPECT_TRUE(phase(device).ok()) << phase(device).status();
}

}  // namespace
}  // namespace fusion
