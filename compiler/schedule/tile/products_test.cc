#include "compiler/schedule/tile/products.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/schedule/testing/schedule_text.h"

namespace fusion {
namespace {

using testing::Device;
using testing::ParseTe;

te::Te OnlyTe(const std::string& te) {
  const te::Program program =
      ParseTe(absl::StrCat("te p(%0: f32[128, 256], %1: f32[256, 512]) {\n  ", te, "\n  return %2\n}"));
  return program.tes.empty() ? te::Te() : program.tes[0];
}

TEST(Products, AreSumsOfSeveralLoads) {
  EXPECT_TRUE(IsProduct(OnlyTe("%2[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])")));
  EXPECT_FALSE(IsProduct(OnlyTe("%2[i0<128, i1<512]: f32 = max.f32(i2<256) mul(%0[i0, i2], %1[i2, i1])")));
  EXPECT_FALSE(IsProduct(OnlyTe("%2[i0<128]: f32 = sum.f32(i1<256) %0[i0, i1]")));
  EXPECT_FALSE(IsProduct(OnlyTe("%2[i0<128, i1<256]: f32 = mul(%0[i0, i1], %1[i1, i0])")));
}

// Rows of `rows` and columns of `columns`; each row is read `columns` times.
bool Wants(int rows, int depth, int columns) {
  const te::Program program = ParseTe(absl::StrFormat(R"(te p(%%0: f32[%1$d, %2$d], %%1: f32[%2$d, %3$d]) {
  %%2[i0<%1$d, i1<%3$d]: f32 = sum.f32(i2<%2$d) mul(%%0[i0, i2], %%1[i2, i1])
  return %%2
})",
                                                      rows, depth, columns));
  return !program.tes.empty() && WantsRegisterTile(program, program.tes[0], Device());
}

TEST(Products, WantATileWhereAllOperandsAreReadAgain) {
  EXPECT_TRUE(Wants(128, 256, 512));
  EXPECT_FALSE(Wants(1, 4096, 512)) << "the matrix is read once";
  EXPECT_FALSE(Wants(8, 16, 8)) << "less work than a task is worth";
}

// 128 rows times the matrix that data pick for each of them, or for all of them together.
TEST(Products, DataMayPickAnotherOperandForEachRow) {
  const auto wants = [](const std::string& pick) {
    const te::Program program = ParseTe(absl::StrCat(R"(te p(%0: f32[128, 256], %1: i64[128], %2: f32[4, 256, 512]) {
  %3[i0<128, i1<512]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %2[%1[)", pick, R"(]{0..3}, i2, i1])
  return %3
})"));
    return !program.tes.empty() && WantsRegisterTile(program, program.tes[0], Device());
  };
  EXPECT_FALSE(wants("i0"));
  EXPECT_TRUE(wants("5"));
}

}  // namespace
}  // namespace fusion
