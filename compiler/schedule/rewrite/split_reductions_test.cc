#include "compiler/schedule/rewrite/split_reductions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/testing/same_results.h"

namespace fusion {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

te::Program Parsed(const std::string& text) {
  absl::StatusOr<te::Program> program = te::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : te::Program();
}

// %1 is what another phase makes: a barrier stands between it and all of its readers.
bool BehindFirst(te::TensorId tensor, const te::Te&) { return tensor == 1; }

std::optional<SplitProgram> Split(const te::Program& program, int64_t chunks) {
  std::optional<SplitProgram> split = SplitReductions(program, BehindFirst, {chunks, 1});
  if (split) {
    EXPECT_TRUE(te::Verify(split->program).ok()) << te::Verify(split->program) << te::Print(split->program);
  }
  return split;
}

std::vector<float> Results(const te::Program& program, const std::vector<float>& values) {
  Tensor input(DType::kF32, program.tensors[program.inputs[0]].shape);
  std::copy(values.begin(), values.end(), input.mutable_as<float>());
  const absl::StatusOr<std::vector<Tensor>> results = te::Interpret(program, {input});
  EXPECT_TRUE(results.ok()) << results.status();
  if (!results.ok()) return {};
  const float* first = results.value()[0].as<float>();
  return {first, first + results.value()[0].num_elements()};
}

// 1 / deviation of the rows of twice %0, and the rows with their mean subtracted.
te::Program Norm() {
  return Parsed(R"(te p(%0: f32[3, 24]) {
    %1[i0<3, i1<24]: f32 = mul(%0[i0, i1], 2.0)
    %2[i2<3]: f32 = sum.f32(i3<24) %1[i2, i3] then (mul(acc0, 0.0416666666))
    %3[i4<3]: f32 = sum.f32(i5<24) let v0 = sub(%1[i4, i5], %2[i4])
      mul(v0, v0) then (div(1.0, sqrt(add(mul(acc0, 0.0416666666), 1e-12))))
    %4[i6<3, i7<24]: f32 = mul(sub(%1[i6, i7], %2[i6]), %3[i6])
    return %4
  })");
}

te::Program Softmax(const std::string& exponential = "exp(min(0.0, sub(%1[i4, i5], %2[i4])))") {
  return Parsed(R"(te p(%0: f32[3, 24]) {
    %1[i0<3, i1<24]: f32 = mul(%0[i0, i1], 1.0)
    %2[i2<3]: f32 = max.f32(i3<24) %1[i2, i3]
    %3[i4<3, i5<24]: f32 = )" +
                exponential + R"(
    %4[i6<3]: f32 = sum.f32(i7<24) %3[i6, i7] then (div(1.0, acc0))
    %5[i8<3, i9<24]: f32 = mul(%3[i8, i9], %4[i8])
    return %5
  })");
}

TEST(SplitReductions, SumsAndExtremaAreCombinedAsTheyAreReduced) {
  for (const char* kind : {"sum", "max", "min"}) {
    const te::Program whole = Parsed(std::string(R"(te p(%0: f32[3, 4, 12]) {
      %1[i0<3, i1<4, i2<12]: f32 = mul(%0[i0, i1, i2], 2.0)
      %2[i3<3]: f32 = )") + kind + R"(.f32(i4<4, i5<12) %1[i3, i4, i5] then (add(acc0, 1.0))
      return %2
    })");
    const auto split = Split(whole, 3);
    ASSERT_TRUE(split.has_value());
    EXPECT_EQ(split->chunks, 3);
    ASSERT_EQ(split->program.tes.size(), 3u);
    EXPECT_EQ(split->program.tes[1].reduction->axes[1].extent, 4);  // the longest axis is cut
    EXPECT_EQ(split->partials, (std::set<te::TensorId>{split->program.tes[1].outputs[0]}));
    EXPECT_TRUE(split->program.tes[1].then.empty());
    EXPECT_EQ(split->program.tes[2].then.size(), 1u);
    ExpectSameResults(whole, split->program);
  }
}

TEST(SplitReductions, ChunksAreEquallyLong) {
  const auto chunks = [](int64_t wanted) {
    const auto split = Split(Norm(), wanted);
    return split ? split->chunks : 0;
  };
  EXPECT_EQ(chunks(2), 2);
  EXPECT_EQ(chunks(5), 6);
  EXPECT_EQ(chunks(24), 24);
  EXPECT_EQ(chunks(25), 0);
  EXPECT_TRUE(SplitReductions(Norm(), BehindFirst, {4, 6}).has_value());
  EXPECT_FALSE(SplitReductions(Norm(), BehindFirst, {4, 7}).has_value());
}

TEST(SplitReductions, OnlyWhatCrossesABarrierIsSplit) {
  EXPECT_FALSE(SplitReductions(Norm(), [](te::TensorId, const te::Te&) { return false; }, {4, 1}).has_value());
  // A barrier behind an input of the fusion block is none.
  EXPECT_FALSE(
      SplitReductions(Norm(), [](te::TensorId tensor, const te::Te&) { return tensor == 0; }, {4, 1}).has_value());
}

TEST(SplitReductions, ANormTakesTwoPartsOfEachOfItsReductions) {
  const auto split = Split(Norm(), 4);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->partials.size(), 2u);
  ASSERT_EQ(split->program.tes.size(), 6u);
  for (const size_t part : {1u, 3u}) EXPECT_EQ(split->program.tes[part].axes[0].extent, 4);
}

// The deviation of a row around 10,000 is 0.01: E[x²] − E[x]² would lose all of it.
TEST(SplitReductions, DeviationsOfValuesWithALargeMeanAreExact) {
  std::vector<float> values;
  for (int i = 0; i < 72; ++i) values.push_back(5000.f + 0.0078125f * static_cast<float>(i * 7 % 5 - 2));
  const std::vector<float> want = Results(Norm(), values);
  for (const int64_t chunks : {2, 3, 8, 24}) {
    const auto split = Split(Norm(), chunks);
    ASSERT_TRUE(split.has_value());
    const std::vector<float> got = Results(split->program, values);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << chunks << " " << i;
  }
}

// Chunks whose means lie far from each other: nearly all of the variance is between them.
TEST(SplitReductions, DeviationsBetweenChunksCount) {
  std::vector<float> values;
  for (int i = 0; i < 72; ++i) values.push_back(static_cast<float>(i / 6 * 1000 + i % 3));
  const std::vector<float> want = Results(Norm(), values), got = Results(Split(Norm(), 4)->program, values);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
}

TEST(SplitReductions, ASoftmaxRescalesTheSumsOfItsChunks) {
  const auto plain = Split(Softmax("exp(sub(%1[i4, i5], %2[i4]))"), 4);
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(plain->partials.size(), 2u);
  const auto split = Split(Softmax(), 4);
  ASSERT_TRUE(split.has_value());
  EXPECT_EQ(split->partials.size(), 2u);
  // Exponentials that only the last map is left to read are computed there.
  ASSERT_EQ(split->program.tes.size(), 6u);
  std::vector<float> values;
  for (int i = 0; i < 72; ++i) values.push_back(static_cast<float>(i * 37 % 19) * 5.f - 40.f);
  const std::vector<float> want = Results(Softmax(), values), got = Results(split->program, values);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(SplitReductions, ASoftmaxOfInfinitiesIsTheSame) {
  // A row with chunks of nothing but −inf, one of nothing but −inf, and one with +inf.
  std::vector<float> values(72, -kInf);
  for (int i = 6; i < 12; ++i) values[i] = static_cast<float>(i);
  for (int i = 48; i < 72; ++i) values[i] = 1;
  values[50] = kInf;
  const std::vector<float> want = Results(Softmax(), values), got = Results(Split(Softmax(), 4)->program, values);
  EXPECT_EQ(want[0], 0);
  EXPECT_TRUE(std::isnan(want[24]) && std::isnan(want[50]));
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(std::isnan(got[i]), std::isnan(want[i])) << i;
    if (!std::isnan(want[i])) {
      EXPECT_NEAR(got[i], want[i], 1e-6) << i;
    }
  }
}

// A sum of other powers of the deviations cannot be combined from sums of chunks alone; nor can deviations from what
// is no mean, or from the mean of other values.
TEST(SplitReductions, WhatDependsOnAResultInAnotherWayStaysWhole) {
  const auto partials = [](const std::string& factor, const std::string& body) {
    const te::Program whole = Parsed(R"(te p(%0: f32[3, 24]) {
      %1[i0<3, i1<24]: f32 = mul(%0[i0, i1], 2.0)
      %2[i2<3]: f32 = sum.f32(i3<24) %1[i2, i3] then (mul(acc0, )" +
                                     factor + R"())
      %3[i4<3]: f32 = sum.f32(i5<24) let v0 = sub(%1[i4, i5], %2[i4])
        )" + body + R"(
      return %3
    })");
    const auto split = Split(whole, 4);
    EXPECT_TRUE(split.has_value());
    ExpectSameResults(whole, split->program);
    return split->partials.size();
  };
  const std::string mean = "0.041666666666666664";
  EXPECT_EQ(partials(mean, "mul(v0, v0)"), 2u);
  EXPECT_EQ(partials(mean, "mul(mul(v0, v0), v0)"), 1u);
  EXPECT_EQ(partials(mean, "exp(v0)"), 1u);
  EXPECT_EQ(partials("0.5", "mul(v0, v0)"), 1u);
}

// Each map of a chain reads the one in front at two places. The sum behind stays whole, or is split over what the chain
// hands it; either way the program stays about as large as it was.
TEST(SplitReductions, AChainThatWouldGrowWithEveryMapStaysAChain) {
  std::string text = "te p(%0: f32[64]) {\n  %1[i0<64]: f32 = mul(%0[i0], 0.5)\n";
  for (int t = 2; t <= 40; ++t) {
    absl::StrAppend(&text, "  %", t, "[i", t, "<64]: f32 = max(%", t - 1, "[i", t, "], %", t - 1, "[63 - i", t, "])\n");
  }
  const te::Program chain = Parsed(text + "  %41[]: f32 = sum.f32(i99<64) %40[i99]\n  return %41\n}");
  const std::optional<SplitProgram> split = Split(chain, 4);
  int64_t nodes = 0;
  for (const te::Te& te : (split ? split->program : chain).tes) {
    for (const te::Scalar& s : te.body) te::Visit(s, [&](const te::ScalarNode&) { ++nodes; });
  }
  EXPECT_LT(nodes, 20000);
}

}  // namespace
}  // namespace fusion
