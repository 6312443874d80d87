#include "compiler/schedule/library/library_convolution.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;

// A convolution of 3 by 3 taps over 8 channels of 14 by 14 to 16 results, with a border of one.
constexpr char kConv[] = "sum.f32(i4<8, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])";

struct Read {
  explicit Read(const std::string& reduction, const char* results = "i0<1, i1<16, i2<14, i3<14",
                const char* filter = "16, 8, 3, 3")
      : drafted(absl::StrCat("te p(%0: f32[1, 8, 14, 14], %1: f32[", filter, "] const) {\n  %2[", results,
                             "]: f32 = ", reduction, "\n  return %2\n}")),
        phase(LibraryConvolutionPhase(drafted.NestOf(), drafted.device, &drafted.draft.kernel)) {}
  LibraryConvolution Call() const {
    EXPECT_TRUE(phase.ok()) << phase.status();
    const LibraryCall* call = phase.ok() ? movement::LibraryCallOf(*phase) : nullptr;
    return call == nullptr ? LibraryConvolution() : std::get<LibraryConvolution>(*call);
  }
  std::string Refusal() const { return std::string(phase.status().message()); }

  DraftedProgram drafted;
  absl::StatusOr<movement::Phase> phase;
};

using Pair = std::array<int64_t, 2>;

TEST(LibraryConvolution, ReadsWindowsOffTheAddresses) {
  const Read read(kConv);
  const LibraryConvolution call = read.Call();
  EXPECT_EQ(call.images, 1);
  EXPECT_EQ(call.groups, 1);
  EXPECT_EQ(call.channels, 8);
  EXPECT_EQ(call.results, 16);
  EXPECT_EQ(Pair({call.in[0], call.in[1]}), Pair({14, 14}));
  EXPECT_EQ(Pair({call.out[0], call.out[1]}), Pair({14, 14}));
  EXPECT_EQ(Pair({call.taps[0], call.taps[1]}), Pair({3, 3}));
  EXPECT_EQ(Pair({call.pad[0], call.pad[1]}), Pair({1, 1}));
  EXPECT_EQ(Pair({call.stride[0], call.stride[1]}), Pair({1, 1}));
  EXPECT_FALSE(call.channels_last);
  EXPECT_TRUE(read.drafted.draft.kernel.packs.empty()) << "the filter lies as the library wants it";
}

TEST(LibraryConvolution, StridesAndDilations) {
  const Read read("sum.f32(i4<8, i5<3, i6<3) mul(%0[i0, i4, 2*i2 + i5, i3 + 2*i6], %1[i1, i4, i5, i6])",
                  "i0<1, i1<16, i2<6, i3<10");
  const LibraryConvolution call = read.Call();
  EXPECT_EQ(Pair({call.stride[0], call.stride[1]}), Pair({2, 1}));
  EXPECT_EQ(Pair({call.dilation[0], call.dilation[1]}), Pair({1, 2}));
  EXPECT_EQ(Pair({call.pad[0], call.pad[1]}), Pair({0, 0}));
}

TEST(LibraryConvolution, AConstantFilterInAnotherOrderIsPacked) {
  const Read read("sum.f32(i4<8, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i5, i6, i4, i1])",
                  "i0<1, i1<16, i2<14, i3<14", "3, 3, 8, 16");
  ASSERT_EQ(read.drafted.draft.kernel.packs.size(), 1u) << read.phase.status();
  EXPECT_EQ(read.Call().w, static_cast<int>(read.drafted.draft.kernel.buffers.size()) - 1);
}

TEST(LibraryConvolution, RefusesTheRest) {
  EXPECT_EQ(Read(absl::StrCat(kConv, " then (max(acc0, 0.0))")).Refusal(),
            "the library cannot compute the epilogue behind the sum");
  EXPECT_EQ(Read("sum.f32(i4<8, i5<3, i6<3) mul(exp(%0[i0, i4, i2 + i5, i3 + i6]), %1[i1, i4, i5, i6])",
                 "i0<1, i1<16, i2<12, i3<12")
                .Refusal(),
            "an operand is computed on the way and does not lie in memory");
  EXPECT_EQ(Read("sum.f32(i4<8) mul(%0[i0, i4, i2, i3], %1[i1, i4, 0, 0])").Refusal(),
            "the window has one tap, so it is a product of matrices");
  EXPECT_EQ(
      Read("sum.f32(i4<8, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?1.0, %1[i1, i4, i5, i6])").Refusal(),
      "an operand is computed on the way and does not lie in memory")
      << "the border counts as zero";
}

}  // namespace
}  // namespace fusion
