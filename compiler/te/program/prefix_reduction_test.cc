#include "compiler/te/program/prefix_reduction.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace fusion::te {
namespace {

std::optional<PrefixReduction> Of(const std::string& reduction, const std::string& test,
                                  const std::string& taken = "%0[i0, i2]", const std::string& identity = "0.0") {
  const absl::StatusOr<Program> program =
      Parse(absl::StrCat("te p(%0: f32[4, 8]) {\n  %1[i0<4, i1<8]: f32 = ", reduction, ".f32(i2<8) if ", test, " then ",
                         taken, " else ", identity, "\n  return %1\n}\n"));
  EXPECT_TRUE(program.ok()) << program.status();
  if (!program.ok()) return std::nullopt;
  return PrefixReductionOf(*program.value().tes[0].reduction, program.value().tes[0].body, program.value().tes[0].axes);
}

TEST(PrefixReduction, KnowsWhereItBeginsAndEnds) {
  struct Case {
    const char* test;
    bool reverse, exclusive;
  };
  for (const Case& c :
       {Case{"i2 < i1 + 1", false, false}, Case{"i2 < i1", false, true}, Case{"i2 >= i1", true, false},
        Case{"i2 >= i1 + 1", true, true}, Case{"i1 >= i2", false, false}, Case{"i1 >= i2 + 1", false, true},
        Case{"i1 < i2 + 1", true, false}, Case{"i1 < i2", true, true}}) {
    const std::optional<PrefixReduction> prefix = Of("sum", c.test);
    ASSERT_TRUE(prefix.has_value()) << c.test;
    EXPECT_EQ(prefix->reverse, c.reverse) << c.test;
    EXPECT_EQ(prefix->exclusive, c.exclusive) << c.test;
  }
  EXPECT_TRUE(Of("prod", "i2 < i1", "%0[i0, i2]", "1.0"));
}

// One pass would not compute these.
TEST(PrefixReduction, LeavesOtherReductionsAlone) {
  EXPECT_FALSE(Of("sum", "i2 < i1 + 2")) << "two elements more";
  EXPECT_FALSE(Of("sum", "i2 < i1 - 1")) << "two elements less";
  EXPECT_FALSE(Of("sum", "i2 < i0")) << "along another axis";
  EXPECT_FALSE(Of("sum", "i2 == i1")) << "one element";
  EXPECT_FALSE(Of("sum", "i2 < i1", "%0[i0, i1]")) << "the element moves with the result";
  EXPECT_FALSE(Of("sum", "i2 < i1", "%0[i0, i2]", "1.0")) << "what is left out counts";
  EXPECT_FALSE(Of("max", "i2 < i1", "%0[i0, i2]")) << "a maximum of 0 and the elements";
}

}  // namespace
}  // namespace fusion::te
