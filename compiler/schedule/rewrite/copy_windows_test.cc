#include "compiler/schedule/rewrite/copy_windows.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/same_results.h"

namespace fusion {
namespace {

std::optional<te::Program> Copied(const std::string& text, te::Program* whole, Layout layout = {},
                                  const DeviceModel& device = {}) {
  te::Program program = te::Parse(text).value();
  *whole = program;
  return CopyWindows(
      program, [layout](te::TensorId) { return layout; }, device);
}

void ExpectCopied(const std::string& text, const Shape& copy) {
  te::Program whole;
  const std::optional<te::Program> copied = Copied(text, &whole);
  ASSERT_TRUE(copied.has_value()) << text;
  ASSERT_EQ(copied->tes.size(), whole.tes.size() + 1);
  EXPECT_TRUE(te::Verify(*copied).ok()) << te::Verify(*copied) << te::Print(*copied);
  EXPECT_EQ(copied->tensors.back().shape, copy);
  ExpectSameResults(whole, *copied);
}

constexpr char kDepthwise[] = R"(te p(%0: f32[2, 3, 7, 9], %1: f32[3, 3, 3] const) {
  %2[i0<2, i1<3, i2<7, i3<9]: f32 = sum.f32(i4<3, i5<3) mul(%0[i0, i1, i2 + i4 - 1, i3 + i5 - 1]?0.0, %1[i1, i4, i5])
  return %2
})";

TEST(CopyWindows, ABorderIsCopiedAround) { ExpectCopied(kDepthwise, {2, 3, 9, 11}); }

TEST(CopyWindows, ElementsAStrideApartComeTogether) {
  ExpectCopied(R"(te p(%0: f32[1, 2, 11, 13]) {
  %1[i0<1, i1<2, i2<6, i3<7]: f32 = max.f32(i4<3, i5<3) %0[i0, i1, 2*i2 + i4 - 1, 2*i3 + i5 - 1]?-inf
  return %1
})",
               {1, 2, 13, 2, 8});
}

// The operand of a tap that only some phases have.
TEST(CopyWindows, APredicateThatAllLanesShareMayStandAroundTheLoad) {
  const auto guarded = [](const std::string& pred) {
    return "te p(%0: f32[4, 9], %1: f32[4, 2, 4] const) {\n"
           "  %2[i0<2, i1<9]: f32 = sum.f32(i2<4, i3<2) mul(if " +
           pred +
           " then %0[i2, i1 - i3]?0.0 else 0.0, %1[i2, i0, i0 + 2*i3])\n"
           "  return %2\n"
           "}";
  };
  ExpectCopied(guarded("i0 + 2*i3 < 3"), {4, 10});
  te::Program whole;
  EXPECT_FALSE(Copied(guarded("i1 + 2*i3 < 3"), &whole).has_value());
}

TEST(CopyWindows, PhasesAreTakenApart) {
  te::Program whole;
  const auto copied = Copied(R"(te p(%0: f32[4, 9], %1: f32[4, 2, 4] const) {
  %2[i0<2, i1<18]: f32 = sum.f32(i2<4, i3<2) mul(%0[i2, i1//2 + (i1%2 + 1)//2 - i3]?0.0, %1[i2, i0, (i1%2 + 1)%2 + 2*i3])
  return %2
})",
                             &whole);
  ASSERT_TRUE(copied.has_value());
  EXPECT_TRUE(te::Verify(*copied).ok()) << te::Verify(*copied) << te::Print(*copied);
  ASSERT_EQ(copied->tes.size(), 3u);
  EXPECT_EQ(copied->tensors[copied->tes[1].outputs[0]].shape, (Shape{2, 2, 9}));
  ExpectSameResults(whole, *copied);
}

// Ten of the 19 results are of one phase and nine of the other; the tenth of the second phase is computed and left out.
TEST(CopyWindows, PhasesOfExtentsThatDoNotDivide) {
  te::Program whole;
  const auto copied = Copied(R"(te p(%0: f32[4, 9], %1: f32[4, 2, 3] const) {
  %2[i0<2, i1<19]: f32 = sum.f32(i2<4, i3<2) mul(%0[i2, i1//2 - i3]?0.0, %1[i2, i0, i1%2 + 2*i3]?0.0)
  return %2
})",
                             &whole);
  ASSERT_TRUE(copied.has_value());
  EXPECT_TRUE(te::Verify(*copied).ok()) << te::Verify(*copied) << te::Print(*copied);
  EXPECT_EQ(copied->tensors[copied->tes[1].outputs[0]].shape, (Shape{2, 2, 10}));
  ExpectSameResults(whole, *copied);
  // The elements past the end of an operand without a border must not be read.
  EXPECT_FALSE(Copied(R"(te p(%0: f32[4, 10], %1: f32[4, 2, 2] const) {
  %2[i0<2, i1<19]: f32 = sum.f32(i2<4) mul(%0[i2, i1//2], %1[i2, i0, i1%2])
  return %2
})",
                      &whole)
                   .has_value());
}

// A prefix sum in parts of five: each part is a row of its own, along which one pass computes the results, wherever the
// axis stands and also where the last part is not whole.
TEST(CopyWindows, PartsOfPrefixReductionsAreRows) {
  for (const std::string kind : {"sum", "prod"}) {
    for (const int64_t extent : {20, 18}) {
      for (const bool innermost : {true, false}) {
        te::Program whole;
        const std::string text = absl::StrCat(
            "te p(%0: f32[4, 5, 3], %1: f32[4, 3]) {\n  %2[", innermost ? "i1<3, " : "", "i0<", extent,
            innermost ? "" : ", i1<3", "]: f32 = ", kind, ".f32(i2<5) if i2 < i0%5 + 1 then %0[i0//5, i2, i1] else ",
            kind == "sum" ? "0.0" : "1.0", " then (add(%1[i0//5, i1], acc0))\n  return %2\n}");
        const auto copied = Copied(text, &whole);
        ASSERT_TRUE(copied.has_value()) << text;
        EXPECT_TRUE(te::Verify(*copied).ok()) << te::Verify(*copied) << te::Print(*copied);
        ASSERT_EQ(copied->tes.size(), 2u);
        EXPECT_EQ(copied->tensors[copied->tes[0].outputs[0]].shape, innermost ? (Shape{3, 4, 5}) : (Shape{4, 5, 3}));
        ExpectSameResults(whole, *copied);
      }
    }
  }
  te::Program whole;  // the last part of the second operand has no elements past its end
  EXPECT_FALSE(Copied(R"(te p(%0: f32[4, 5], %1: f32[18]) {
  %2[i0<18]: f32 = sum.f32(i2<5) if i2 < i0%5 + 1 then %0[i0//5, i2] else 0.0 then (add(%1[i0], acc0))
  return %2
})",
                      &whole)
                   .has_value());
}

// Three innermost channels are too few for lanes; the row along which the window slides is long enough.
TEST(CopyWindows, AShortInnermostAxisOfAnIntermediateMovesOut) {
  te::Program whole;
  const auto copied = Copied(R"(te p(%0: f32[4, 20], %1: f32[4, 3, 3] const) {
  %2[i0<20, i1<3]: f32 = sum.f32(i2<4, i3<3) mul(%0[i2, i0 + i3 - 1]?0.0, %1[i2, i1, i3])
  %3[i4<3, i5<20]: f32 = add(%2[i5, i4], 1.0)
  return %3
})",
                             &whole);
  ASSERT_TRUE(copied.has_value());
  EXPECT_TRUE(te::Verify(*copied).ok()) << te::Verify(*copied) << te::Print(*copied);
  EXPECT_EQ(copied->tensors[copied->tes[1].outputs[0]].shape, (Shape{3, 20}));
  ExpectSameResults(whole, *copied);
}

// Three of eight lanes could be channels, but they waste more than half of a vector.
TEST(CopyWindows, AnInnermostAxisOfLessThanHalfAVectorMovesOut) {
  const auto shape_with = [](int64_t channels) {
    te::Program whole;
    DeviceModel device;
    device.vector_bytes = 32;
    const auto copied =
        Copied(absl::StrCat("te p(%0: f32[4, 20], %1: f32[4, ", channels, R"(, 3] const) {
  %2[i0<20, i1<)",
                            channels, R"(]: f32 = sum.f32(i2<4, i3<3) mul(%0[i2, i0 + i3 - 1]?0.0, %1[i2, i1, i3])
  %3[i4<)",
                            channels, R"(, i5<20]: f32 = add(%2[i5, i4], 1.0)
  return %3
})"),
               &whole, Layout(), device);
    return copied ? copied->tensors[copied->tes[1].outputs[0]].shape : Shape{};
  };
  EXPECT_EQ(shape_with(3), (Shape{3, 20}));
  EXPECT_NE(shape_with(4), (Shape{4, 20}));
}

TEST(CopyWindows, APlainRowNeedsNone) {
  te::Program whole;
  EXPECT_FALSE(Copied(R"(te p(%0: f32[4, 40], %1: f32[3] const) {
  %2[i0<4, i1<38]: f32 = sum.f32(i2<3) mul(%0[i0, i1 + i2], %1[i2])
  return %2
})",
                      &whole)
                   .has_value());
}

TEST(CopyWindows, ChannelsThatLieInnermostStay) {
  te::Program whole;
  EXPECT_FALSE(Copied(kDepthwise, &whole, Layout{1, 16}).has_value());
}

TEST(CopyWindows, WindowsBesideEachOtherAreCopiedForTheirVectors) {
  ExpectCopied(R"(te p(%0: f32[4, 41]) {
  %1[i0<4, i1<21]: f32 = max.f32(i2<2) %0[i0, 2*i1 + i2]?-inf
  return %1
})",
               {4, 2, 21});
}

TEST(CopyWindows, WindowsThatLeaveElementsOutAreNot) {
  te::Program whole;
  EXPECT_FALSE(Copied(R"(te p(%0: f32[4, 63]) {
  %1[i0<4, i1<21]: f32 = max.f32(i2<2) %0[i0, 3*i1 + i2]
  return %1
})",
                      &whole)
                   .has_value());
}

}  // namespace
}  // namespace fusion
