#include "tests/fuzz/graphs/wide_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/ecg/text.h"
#include "tests/fuzz/graphs/judge.h"

namespace fusion::fuzz {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor Floats(const std::vector<double>& values) {
  return Tensor::From<double>(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

// x · y / 1024
ecg::Graph ScaledProduct() {
  auto graph = ecg::Parse(
      "graph g(%x: f32[4], %y: f32[4]) {\n  %c: f32[] = const {0.0009765625}\n  %p: f32[4] = Mul(%x, %y)\n"
      "  %v: f32[4] = Mul(%p, %c)\n  return %v\n}\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}
const std::vector<Tensor> kInputs = {Floats({0x1p100, 0x1p100, 0x1p100, 3}), Floats({-0x1p20, 0x1p44, 0x1p50, kInf})};

TEST(WideRangeTest, OverflowBeginsLater) {
  const auto run = RunInWideRange(ScaledProduct(), kInputs);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ((*run)[0].GetDouble(0), -0x1p110);
  EXPECT_EQ((*run)[0].GetDouble(1), 0x1p134);
  EXPECT_EQ((*run)[0].GetDouble(2), kInf);
  EXPECT_EQ((*run)[0].GetDouble(3), kInf);
}

TEST(WideRangeTest, FloatsThatIntegersBecomeAreWideToo) {
  const auto graph =
      ecg::Parse("graph g(%x: i64[1]) {\n  %f: f32[1] = Cast(%x) {to = 1}\n  %e: f32[1] = Exp(%f)\n  return %e\n}\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto run = RunInWideRange(*graph, {Tensor::From<int64_t>(DType::kI64, {1}, {95})});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_NEAR((*run)[0].GetDouble(0) / std::exp(95.0), 1, 1e-9) << "beyond f32, within 2^145";
}

TEST(WideRangeTest, TheJudgeAllowsWhatOnlyTheRangeDecides) {
  const ecg::Graph graph = ScaledProduct();
  const auto agrees = [&](std::vector<double> actual, bool allow) {
    auto expected = Expect(graph, kInputs, 6);
    EXPECT_TRUE(expected.ok()) << expected.status();
    if (allow) EXPECT_TRUE(AllowForRange(graph, kInputs, &*expected).ok());
    Coverage coverage;
    return Agree(*expected, {Floats(actual)}, Subnormal::kKept, &coverage).ok();
  };
  EXPECT_TRUE(agrees({-0x1p110, kInf, kInf, kInf}, false));
  EXPECT_FALSE(agrees({-0x1p110, 0x1p127, kInf, kInf}, false));
  EXPECT_TRUE(agrees({-0x1p110, 0x1p127, kInf, kInf}, true));
  EXPECT_FALSE(agrees({-kInf, kInf, kInf, kInf}, true)) << "a finite number stays one";
  EXPECT_FALSE(agrees({-0x1p109, kInf, kInf, kInf}, true));
  EXPECT_FALSE(agrees({-0x1p110, kInf, 0x1p127, kInf}, true)) << "overflows by more than 2^17";
  EXPECT_FALSE(agrees({-0x1p110, kInf, kInf, 5}, true));
}

}  // namespace
}  // namespace fusion::fuzz
