#include "compiler/te/program/split_prefixes.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/prefix_reduction.h"

namespace fusion::te {
namespace {

// Rows of 1,100 elements in the middle of three axes: 33 parts of 34, the last one shorter.
constexpr int64_t kRows = 1100;

Program Prefixes(const std::string& kind, const std::string& test, const std::string& then = "") {
  const std::string identity = kind == "prod" ? "1.0" : "0.0";
  absl::StatusOr<Program> program = Parse(
      absl::StrCat("te p(%0: f32[2, ", kRows, ", 3]) {\n  %1[i0<2, i1<", kRows, ", i2<3]: f32 = ", kind, ".f32(i3<",
                   kRows, ") if ", test, " then %0[i0, i3, i2] else ", identity, then, "\n  return %1\n}\n"));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *program : Program();
}

// The results by their definition, of elements that sums and products of 1,100 hold exactly.
std::vector<double> ByDefinition(const Tensor& x, bool product, bool reverse, bool exclusive) {
  std::vector<double> y(static_cast<size_t>(x.num_elements()));
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      double all = product ? 1 : 0;
      for (int64_t k = 0; k < kRows; ++k) {
        const int64_t at = (row * kRows + (reverse ? kRows - 1 - k : k)) * 3 + column;
        const double next = product ? all * x.GetDouble(at) : all + x.GetDouble(at);
        y[static_cast<size_t>(at)] = exclusive ? all : next;
        all = next;
      }
    }
  }
  return y;
}

Tensor Drawn(bool product) {
  std::vector<double> values(2 * kRows * 3);
  uint32_t random = 1;
  for (double& value : values) {
    random = random * 1664525 + 1013904223;
    value = product ? (random >> 30 == 0 ? -1 : 1) : static_cast<double>(random >> 24) - 100;
  }
  return Tensor::From<double>(DType::kF32, {2, kRows, 3}, values);
}

std::vector<double> Results(const Program& program, const Tensor& x) {
  const auto outputs = Interpret(program, {x});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<double> values;
  for (int64_t i = 0; outputs.ok() && i < x.num_elements(); ++i) values.push_back((*outputs)[0].GetDouble(i));
  return values;
}

TEST(SplitPrefixes, PartsGiveWhatTheWholeDefines) {
  struct Case {
    const char* test;
    bool reverse, exclusive;
  };
  for (const Case& c : {Case{"i3 < i1 + 1", false, false}, Case{"i3 < i1", false, true}, Case{"i3 >= i1", true, false},
                        Case{"i3 >= i1 + 1", true, true}}) {
    for (const bool product : {false, true}) {
      const Program whole = Prefixes(product ? "prod" : "sum", c.test);
      const std::optional<Program> split = SplitPrefixes(whole);
      ASSERT_TRUE(split.has_value()) << c.test;
      EXPECT_TRUE(Verify(*split).ok()) << Verify(*split);
      EXPECT_EQ(split->outputs, whole.outputs);
      const Tensor x = Drawn(product);
      EXPECT_EQ(Results(*split, x), ByDefinition(x, product, c.reverse, c.exclusive)) << c.test << product;
    }
  }
}

TEST(SplitPrefixes, NoPartIsLong) {
  const std::optional<Program> split = SplitPrefixes(Prefixes("sum", "i3 < i1 + 1"));
  ASSERT_TRUE(split.has_value());
  int prefixes = 0;
  for (const Te& te : split->tes) {
    if (!te.reduction) continue;
    EXPECT_LE(te.reduction->axes[0].extent, 34);
    prefixes += PrefixReductionOf(*te.reduction, te.body, te.axes).has_value() ? 1 : 0;
  }
  EXPECT_EQ(prefixes, 2);
  EXPECT_FALSE(SplitPrefixes(*split).has_value());
}

TEST(SplitPrefixes, WhatFollowsTheReductionReadsTheWholeSum) {
  const Program whole = Prefixes("sum", "i3 < i1 + 1", " then (mul(acc0, acc0))");
  const std::optional<Program> split = SplitPrefixes(whole);
  ASSERT_TRUE(split.has_value());
  const Tensor x = Drawn(false);
  std::vector<double> squares = ByDefinition(x, false, false, false);
  for (double& y : squares) y = static_cast<float>(y * y);
  EXPECT_EQ(Results(*split, x), squares);
}

TEST(SplitPrefixes, OtherReductionsStay) { EXPECT_FALSE(SplitPrefixes(Prefixes("sum", "i3 < i1 + 2")).has_value()); }

}  // namespace
}  // namespace fusion::te
