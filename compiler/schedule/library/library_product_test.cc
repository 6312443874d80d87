#include "compiler/schedule/library/library_product.h"

#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::DraftedProgram;
using testing::OrFail;

absl::StatusOr<LibraryProduct> ProductOf(const std::string& te) {
  DraftedProgram drafted(absl::StrCat("te p(%0: f32[6, 32, 64], %1: f32[6, 64, 48], %2: f32[48], %3: f32[32]) {\n  ",
                                      te, "\n  return %4\n}"));
  const absl::StatusOr<movement::Phase> phase =
      LibraryProductPhase(drafted.NestOf(), drafted.device, drafted.draft.kernel);
  if (!phase.ok()) return phase.status();
  const LibraryCall* call = movement::LibraryCallOf(*phase);
  EXPECT_NE(call, nullptr);
  return call == nullptr ? LibraryProduct() : std::get<LibraryProduct>(*call);
}

std::string Refusal(const std::string& te) { return std::string(ProductOf(te).status().message()); }

// Columns are contiguous in the result, so they are the call's m.
TEST(LibraryProduct, ReadsMatricesOffTheAddresses) {
  const LibraryProduct one =
      OrFail(ProductOf("%4[i0<32, i1<48]: f32 = sum.f32(i2<64) mul(%0[0, i0, i2], %1[0, i2, i1])"));
  EXPECT_EQ(one.m, 48);
  EXPECT_EQ(one.n, 32);
  EXPECT_EQ(one.depth, 64);
  EXPECT_EQ(one.batches, 1);
  EXPECT_FALSE(one.a_along_depth);
  EXPECT_TRUE(one.b_along_depth);
  EXPECT_EQ(one.a_pitch, 48);
  EXPECT_EQ(one.b_pitch, 64);
  EXPECT_EQ(one.d_pitch, 48);
  EXPECT_EQ(one.bias, -1);

  const LibraryProduct batch =
      OrFail(ProductOf("%4[i0<6, i1<32, i2<48]: f32 = sum.f32(i3<64) mul(%0[i0, i1, i3], %1[i0, i3, i2])"));
  EXPECT_EQ(batch.batches, 6);
  EXPECT_EQ(batch.a_batch, 64 * 48);
  EXPECT_EQ(batch.b_batch, 32 * 64);
  EXPECT_EQ(batch.d_batch, 32 * 48);

  const LibraryProduct turned =
      OrFail(ProductOf("%4[i0<48, i1<32]: f32 = sum.f32(i2<64) mul(%0[0, i1, i2], %1[0, i2, i0])"));
  EXPECT_EQ(turned.m, 32) << "rows are contiguous in this result";
  EXPECT_TRUE(turned.a_along_depth);
}

TEST(LibraryProduct, ABiasAlongTheContiguousAxisMayFollow) {
  const std::string sum = "%4[i0<32, i1<48]: f32 = sum.f32(i2<64) mul(%0[0, i0, i2], %1[0, i2, i1]) then ";
  EXPECT_EQ(OrFail(ProductOf(absl::StrCat(sum, "(add(acc0, %2[i1]))"))).bias, 2);
  EXPECT_EQ(OrFail(ProductOf(absl::StrCat(sum, "(add(%2[i1], acc0))"))).bias, 2);
  EXPECT_EQ(Refusal(absl::StrCat(sum, "(add(acc0, %3[i0]))")), "the epilogue behind the sum is not a bias");
  EXPECT_EQ(Refusal(absl::StrCat(sum, "(max(acc0, 0.0))")), "the epilogue behind the sum is not a bias");
}

TEST(LibraryProduct, RefusesTheRest) {
  EXPECT_EQ(Refusal("%4[i0<32, i1<48]: f32 = max.f32(i2<64) mul(%0[0, i0, i2], %1[0, i2, i1])"),
            "the stage is not a plain sum of f32 products");
  EXPECT_EQ(Refusal("%4[i0<32, i1<48]: f32 = sum.f32(i2<64) mul(exp(%0[0, i0, i2]), %1[0, i2, i1])"),
            "an operand is computed on the way and does not lie in memory");
  EXPECT_EQ(Refusal("%4[i0<32, i1<48]: f32 = sum.f32(i2<32) mul(%0[0, i0, 2*i2], %1[0, i2, i1])"),
            "the addresses are not those of matrices");
  EXPECT_EQ(Refusal("%4[i0<32, i1<48]: f32 = sum.f32(i2<6, i3<64) mul(%0[i2, i0, i3], %1[i2, i3, i1])"),
            "the addresses are not those of matrices");
}

}  // namespace
}  // namespace fusion
