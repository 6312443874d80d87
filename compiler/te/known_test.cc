#include "compiler/te/known.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

Known Symbol(int symbol, double hi) {
  Known known;
  known.lo = 0;
  known.hi = hi;
  known.linear = true;
  known.terms[symbol] = 1;
  return known;
}

std::vector<std::optional<KnownTensor>> Evaluate(const std::string& text,
                                                 const std::vector<std::optional<KnownTensor>>& inputs) {
  const auto program = Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return Know(*program, inputs);
}

TEST(Known, SumsOfSymbols) {
  // (4·n + 8) / 4 - n = 2, whatever n is.
  const auto result = Evaluate(R"(te p(%0: i64[]) {
  %1[]: i64 = div(add(mul(%0[], 4:i64), 8:i64), 4:i64)
  %2[]: i64 = sub(%1[], %0[])
  return %1, %2
})",
                               {KnownTensor{Symbol(7, 10)}});
  EXPECT_TRUE((*result[0])[0].linear);
  EXPECT_EQ((*result[0])[0].constant, 2);
  EXPECT_EQ((*result[0])[0].terms, (std::map<int, int64_t>{{7, 1}}));
  EXPECT_EQ((*result[0])[0].hi, 12);
  EXPECT_TRUE((*result[1])[0].IsPoint());
  EXPECT_EQ((*result[1])[0].lo, 2);
}

TEST(Known, RangesThroughMinimaRoundingAndFolds) {
  const auto result = Evaluate(R"(te p(%0: i64[2]) {
  %1[i0<2]: i64 = min(%0[i0], 5:i64)
  %2[i1<2]: f32 = floor(mul(cast.f32(%0[i1]), 0.5))
  %3[]: i64 = prod.i64(i2<2) %1[i2]
  %4[]: bool = lt(%1[0], 6:i64)
  return %1, %2, %3, %4
})",
                               {KnownTensor{Symbol(1, 1000), Known::Exactly(3, true)}});
  EXPECT_EQ((*result[0])[0].hi, 5);
  EXPECT_EQ((*result[0])[1].lo, 3);
  EXPECT_EQ((*result[1])[0].hi, 500);
  EXPECT_EQ((*result[1])[1].lo, 1);
  EXPECT_EQ((*result[2])[0].hi, 15);
  EXPECT_EQ((*result[3])[0].lo, 1);  // always true
}

TEST(Known, NothingOfWhatIsNotKnown) {
  const auto result = Evaluate(R"(te p(%0: i64[], %1: i64[]) {
  %2[]: i64 = add(%0[], %1[])
  %3[i0<100]: i64 = index(i0)
  %4[]: i8 = cast.i8(%1[])
  return %2, %3, %4
})",
                               {std::nullopt, KnownTensor{Symbol(1, 1000)}});
  EXPECT_FALSE((*result[0])[0].linear);
  EXPECT_FALSE(result[1].has_value());
  EXPECT_LE((*result[2])[0].lo, -128);  // it may wrap
  EXPECT_GE((*result[2])[0].hi, 127);
}

}  // namespace
}  // namespace fusion::te
