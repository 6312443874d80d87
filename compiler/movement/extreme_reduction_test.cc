#include "compiler/movement/extreme_reduction.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fusion::movement {
namespace {

std::optional<ExtremeReduction> Of(const std::string& take, const std::string& init = "-inf",
                                   const std::string& index = "index(i1)") {
  const absl::StatusOr<te::Program> program = te::Parse(absl::StrCat(
      "te p(%0: f32[4, 8]) {\n  %1, %2[i0<4]: f32, i64 = reduce(i1<8)(", init, ", 0:i64) ->\n    let v0 = ", take,
      "\n    (select(v0, %0[i0, i1], acc0), select(v0, ", index, ", acc1))\n  return %1, %2\n}\n"));
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return std::nullopt;
  return ExtremeReductionOf(*program.value().tes[0].reduction, program.value().tes[0].body);
}

TEST(ExtremeReduction, KnowsTheFirstAndTheLast) {
  const std::string x = "%0[i0, i1]", first = absl::StrCat("and(isnan(", x, "), not(isnan(acc0)))");
  std::optional<ExtremeReduction> reduction = Of(absl::StrCat("or(gt(", x, ", acc0), ", first, ")"));
  ASSERT_TRUE(reduction.has_value());
  EXPECT_TRUE(reduction->max && !reduction->last);
  reduction = Of(absl::StrCat("or(le(", x, ", acc0), isnan(", x, "))"), "inf");
  ASSERT_TRUE(reduction.has_value());
  EXPECT_TRUE(!reduction->max && reduction->last);
}

// For these, lanes that reduce parts for themselves would give another result.
TEST(ExtremeReduction, LeavesOtherReductionsAlone) {
  const std::string x = "%0[i0, i1]", first = absl::StrCat("and(isnan(", x, "), not(isnan(acc0)))");
  EXPECT_FALSE(Of(absl::StrCat("gt(", x, ", acc0)"))) << "NaN is not taken";
  EXPECT_FALSE(Of(absl::StrCat("or(gt(", x, ", acc0), isnan(", x, "))"))) << "the last NaN, but the first maximum";
  EXPECT_FALSE(Of(absl::StrCat("or(ge(", x, ", acc0), ", first, ")"))) << "the first NaN, but the last maximum";
  EXPECT_FALSE(Of(absl::StrCat("or(gt(", x, ", acc0), ", first, ")"), "0.0")) << "starts from a value that may win";
  EXPECT_FALSE(Of(absl::StrCat("or(lt(", x, ", acc0), ", first, ")"), "-inf")) << "starts from the best";
  EXPECT_FALSE(Of(absl::StrCat("or(gt(", x, ", acc0), ", first, ")"), "-inf", "index(2*i1)")) << "not its index";
  EXPECT_FALSE(Of(absl::StrCat("or(gt(sub(", x, ", 0.5), acc0), ", first, ")"))) << "compares another value";
}

}  // namespace
}  // namespace fusion::movement
