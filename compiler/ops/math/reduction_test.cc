// Tests of the reduction, softmax and normalisation families.
#include <cmath>
#include <limits>

#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

MATCHER_P(Near, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance * (1 + std::abs(std::get<1>(arg)));
}

const Tensor kX = F32({2, 3}, {1, 2, 3, 4, 5, 7});

TEST(Reduce, AxesAndKeepdims) {
  const OpCase rows{"ReduceMean", {kX, I64({1}, {-1})}, {{"keepdims", int64_t{0}}}, {1}};
  EXPECT_THAT(Values(RunOp(rows)), Pointwise(Near(1e-6), {2.0, 16.0 / 3}));
  EXPECT_EQ(TypeOf(rows)->shape, Shape({2}));
  const OpCase columns{"ReduceSum", {kX, I64({1}, {0})}, {}, {1}};
  EXPECT_THAT(Values(RunOp(columns)), ElementsAre(5, 7, 10));
  EXPECT_EQ(TypeOf(columns)->shape, Shape({1, 3}));
  EXPECT_EQ(CountTes(columns), 1);
}

TEST(Reduce, NoAxes) {
  EXPECT_THAT(Values(RunOp({"ReduceProd", {kX}})), ElementsAre(840));
  EXPECT_THAT(Values(RunOp({"ReduceSum", {kX}, {{"noop_with_empty_axes", int64_t{1}}}})),
              ElementsAre(1, 2, 3, 4, 5, 7));
}

TEST(Reduce, Kinds) {
  const auto run = [](const char* op) { return Values(RunOp({op, {kX, I64({1}, {1})}, {}, {1}})); };
  EXPECT_THAT(run("ReduceMax"), ElementsAre(3, 7));
  EXPECT_THAT(run("ReduceMin"), ElementsAre(1, 4));
  EXPECT_THAT(run("ReduceL1"), ElementsAre(6, 16));
  EXPECT_THAT(run("ReduceL2"), Pointwise(Near(1e-6), {std::sqrt(14.0), std::sqrt(90.0)}));
  EXPECT_THAT(run("ReduceSumSquare"), ElementsAre(14, 90));
  EXPECT_THAT(run("ReduceLogSum"), Pointwise(Near(1e-6), {std::log(6.0), std::log(16.0)}));
}

// Without axes to reduce, the operations before and after the sum still apply to each element.
TEST(Reduce, NothingToReduceStillComputes) {
  const Tensor x = F32({2}, {-3, 2});
  const auto noop = [&](const char* op) { return Values(RunOp({op, {x}, {{"noop_with_empty_axes", int64_t{1}}}})); };
  EXPECT_THAT(noop("ReduceSumSquare"), ElementsAre(9, 4));
  EXPECT_THAT(noop("ReduceL1"), ElementsAre(3, 2));
  EXPECT_THAT(noop("ReduceL2"), ElementsAre(3, 2));
  EXPECT_THAT(noop("ReduceSum"), ElementsAre(-3, 2));
  EXPECT_THAT(noop("ReduceLogSumExp"), ElementsAre(-3, 2));
  EXPECT_THAT(Values(RunOp({"ReduceSumSquare", {F32({}, {-3})}})), ElementsAre(9));
  EXPECT_THAT(Values(RunOp({"ReduceLogSum", {F32({}, {std::exp(2.0)})}})), Pointwise(Near(1e-6), {2.0}));
}

TEST(Reduce, EmptyAxesGiveTheIdentity) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto run = [](const char* op) { return Values(RunOp({op, {F32({2, 0}, {}), I64({1}, {1})}, {}, {1}})); };
  EXPECT_THAT(run("ReduceSum"), ElementsAre(0, 0));
  EXPECT_THAT(run("ReduceProd"), ElementsAre(1, 1));
  EXPECT_THAT(run("ReduceMax"), ElementsAre(-inf, -inf));
  EXPECT_THAT(run("ReduceLogSumExp"), ElementsAre(-inf, -inf));
}

TEST(Reduce, BoolHasAnOrder) {
  const Tensor x = Tensor::From<int64_t>(DType::kBool, {2, 2}, {1, 0, 0, 0});
  const auto run = [&](const char* op) { return RunOp({op, {x, I64({1}, {1})}, {}, {1}}); };
  EXPECT_THAT(Values(run("ReduceMax")), ElementsAre(1, 0));
  EXPECT_THAT(Values(run("ReduceMin")), ElementsAre(0, 0));
  EXPECT_EQ(run("ReduceSum").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(Values(RunOp({"ReduceLogSumExp", {F32({2}, {1000, 1000})}})),
              Pointwise(Near(1e-6), {1000 + std::log(2.0)}));
  EXPECT_THAT(Values(RunOp({"ReduceLogSumExp", {F32({2}, {-inf, -inf})}})), ElementsAre(-inf));
}

TEST(Reduce, AxesMustBeKnownAndInRange) {
  EXPECT_EQ(RunOp({"ReduceSum", {kX, I64({1}, {1})}}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(RunOp({"ReduceSum", {kX, I64({1}, {2})}, {}, {1}}).status().message()),
              HasSubstr("ReduceSum 'n': axis 2 is outside a tensor of rank 2"));
}

TEST(Arg, FirstAndLast) {
  const Tensor x = F32({2, 3}, {5, 9, 9, 1, 1, 4});
  const auto run = [&](const char* op, int64_t last) {
    return Values(RunOp({op, {x}, {{"axis", int64_t{1}}, {"select_last_index", last}}}));
  };
  EXPECT_THAT(run("ArgMax", 0), ElementsAre(1, 2));
  EXPECT_THAT(run("ArgMax", 1), ElementsAre(2, 2));
  EXPECT_THAT(run("ArgMin", 0), ElementsAre(0, 0));
  EXPECT_THAT(run("ArgMin", 1), ElementsAre(0, 1));
}

TEST(Arg, NanWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor x = F32({2, 4}, {1, nan, 9, nan, nan, 2, 3, 4});
  for (const char* op : {"ArgMax", "ArgMin"}) {
    const auto run = [&](int64_t last) {
      return Values(RunOp({op, {x}, {{"axis", int64_t{1}}, {"select_last_index", last}}}));
    };
    EXPECT_THAT(run(0), ElementsAre(1, 0));
    EXPECT_THAT(run(1), ElementsAre(3, 0));
  }
}

// The reference takes them in parts of 33 elements, the last one of 8.
TEST(CumSum, LongAxes) {
  const int64_t n = 1031;
  EXPECT_EQ(CountTes({"CumSum", {F32({n}, std::vector<double>(n)), I64({}, {0})}, {}, {1}}), 1);
  std::vector<double> values(2 * n);
  for (int64_t i = 0; i < 2 * n; ++i) values[i] = static_cast<double>(i % 7) - 2;
  for (const int64_t exclusive : {0, 1}) {
    for (const int64_t reverse : {0, 1}) {
      std::vector<double> expected(2 * n);
      for (int64_t row = 0; row < 2; ++row) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          const int64_t at = row * n + (reverse != 0 ? n - 1 - k : k);
          expected[at] = exclusive != 0 ? sum : sum + values[at];
          sum += values[at];
        }
      }
      EXPECT_EQ(
          Values(RunOp(
              {"CumSum", {F32({2, n}, values), I64({}, {-1})}, {{"exclusive", exclusive}, {"reverse", reverse}}, {1}})),
          expected);
    }
  }
}

TEST(CumProd, ExclusiveAndReverse) {
  const auto run = [](int64_t exclusive, int64_t reverse) {
    return Values(RunOp(
        {"CumProd", {F32({4}, {1, 2, 3, 4}), I64({}, {0})}, {{"exclusive", exclusive}, {"reverse", reverse}}, {1}}));
  };
  EXPECT_THAT(run(0, 0), ElementsAre(1, 2, 6, 24));
  EXPECT_THAT(run(1, 0), ElementsAre(1, 1, 2, 6));
  EXPECT_THAT(run(0, 1), ElementsAre(24, 24, 12, 4));
  EXPECT_THAT(run(1, 1), ElementsAre(24, 12, 4, 1));
}

TEST(CumProd, LongAxes) {
  const int64_t n = 1031;
  std::vector<double> values(n), expected(n);
  double product = 1;
  for (int64_t i = 0; i < n; ++i) {
    values[i] = i % 3 == 0 ? -2 : i % 3 == 1 ? 0.5 : 1;
    expected[i] = product *= values[i];
  }
  EXPECT_EQ(Values(RunOp({"CumProd", {F32({n}, values), I64({}, {0})}, {}, {1}})), expected);
}

TEST(LpNormalization, ZerosWhereTheNormIsZero) {
  for (const int64_t p : {1, 2}) {
    const OpCase rows{"LpNormalization", {F32({3, 2}, {0, 0, 3, 4, 0, -5})}, {{"p", p}}};
    const double length = p == 1 ? 7 : 5;
    EXPECT_THAT(Values(RunOp(rows)), Pointwise(Near(1e-6), {0.0, 0.0, 3 / length, 4 / length, 0.0, -1.0}));
  }
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(Values(RunOp({"LpNormalization", {F32({1, 2}, {0, nan})}})),
              ElementsAre(::testing::IsNan(), ::testing::IsNan()));
}

TEST(CumSum, ExclusiveAndReverse) {
  const auto run = [](int64_t exclusive, int64_t reverse) {
    return Values(RunOp(
        {"CumSum", {F32({4}, {1, 2, 3, 4}), I64({}, {0})}, {{"exclusive", exclusive}, {"reverse", reverse}}, {1}}));
  };
  EXPECT_THAT(run(0, 0), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(run(1, 0), ElementsAre(0, 1, 3, 6));
  EXPECT_THAT(run(0, 1), ElementsAre(10, 9, 7, 4));
  EXPECT_THAT(run(1, 1), ElementsAre(9, 7, 4, 0));
}

TEST(Softmax, RowsSumToOneAtLargeInputs) {
  const OpCase softmax{"Softmax", {F32({2, 2}, {1000, 1000, 0, std::log(3.0)})}};
  EXPECT_THAT(Values(RunOp(softmax)), Pointwise(Near(1e-6), {0.5, 0.5, 0.25, 0.75}));
  EXPECT_EQ(CountTes(softmax), 4);  // max, exp, sum, division
  EXPECT_EQ(MappingOf(softmax), MappingType::kManyToMany);
  EXPECT_THAT(Values(RunOp({"LogSoftmax", {F32({2}, {0, std::log(3.0)})}})),
              Pointwise(Near(1e-6), {std::log(0.25), std::log(0.75)}));
}

TEST(Softmax, InnerAxis) {
  const OpCase softmax{"Softmax", {F32({2, 2}, {0, 5, 0, 5})}, {{"axis", int64_t{0}}}};
  EXPECT_THAT(Values(RunOp(softmax)), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(Values(RunOp({"Hardmax", {F32({2, 3}, {1, 3, 3, 2, 0, 1})}})), ElementsAre(0, 1, 0, 1, 0, 0));
}

TEST(BatchNormalization, IsScaleAndShift) {
  const OpCase bn{
      "BatchNormalization",
      {F32({1, 2, 2}, {1, 2, 3, 4}), F32({2}, {2, 1}), F32({2}, {1, 0}), F32({2}, {1, 3}), F32({2}, {4, 1})},
      {{"epsilon", 0.0}}};
  EXPECT_THAT(Values(RunOp(bn)), ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(MappingOf(bn), MappingType::kOneToOne);
}

TEST(LayerNormalization, NormalisesTheTrailingAxes) {
  const OpCase ln{"LayerNormalization",
                  {F32({2, 2}, {1, 3, 10, 30}), F32({2}, {1, 2}), F32({2}, {0, 1})},
                  {{"epsilon", 0.0}},
                  {},
                  3};
  const auto result = RunOp(ln);
  EXPECT_THAT(Values(result), Pointwise(Near(1e-6), {-1, 3, -1, 3}));
  EXPECT_THAT(Values(result, 1), ElementsAre(2, 20));
  EXPECT_THAT(Values(result, 2), Pointwise(Near(1e-6), {1.0, 0.1}));
  EXPECT_EQ(CountTes({"LayerNormalization", {F32({2, 2}, {1, 3, 10, 30}), F32({2}, {1, 2})}}), 3);
}

TEST(GroupNormalization, OfNoChannels) {
  const Tensor x = F32({2, 0, 3}, {}), none = F32({0}, {});
  EXPECT_THAT(Values(RunOp({"GroupNormalization", {x, none, none}, {{"num_groups", int64_t{2}}}})), ElementsAre());
  EXPECT_THAT(Values(RunOp({"InstanceNormalization", {x, none, none}})), ElementsAre());
}

TEST(GroupNormalization, GroupsOfChannels) {
  const Tensor x = F32({1, 4, 1}, {1, 3, 10, 30}), one = F32({4}, {1, 1, 1, 1}), zero = F32({4}, {0, 0, 0, 0});
  EXPECT_THAT(Values(RunOp({"GroupNormalization", {x, one, zero}, {{"num_groups", int64_t{2}}, {"epsilon", 0.0}}})),
              Pointwise(Near(1e-6), {-1, 1, -1, 1}));
  EXPECT_THAT(Values(RunOp({"GroupNormalization",
                            {x, F32({2}, {1, 2}), F32({2}, {0, 5})},
                            {{"num_groups", int64_t{2}}, {"epsilon", 0.0}}})),
              Pointwise(Near(1e-6), {-1, 1, 3, 7}));
  EXPECT_THAT(
      std::string(RunOp({"GroupNormalization", {x, one, zero}, {{"num_groups", int64_t{3}}}}).status().message()),
      HasSubstr("num_groups=3 does not divide C=4"));
}

TEST(InstanceNormalization, PerChannel) {
  EXPECT_THAT(Values(RunOp({"InstanceNormalization",
                            {F32({1, 2, 2}, {1, 3, 10, 30}), F32({2}, {1, 2}), F32({2}, {0, 1})},
                            {{"epsilon", 0.0}}})),
              Pointwise(Near(1e-6), {-1, 1, -1, 3}));
}

TEST(Lrn, SumsOverNeighbouringChannels) {
  const OpCase lrn{
      "LRN", {F32({1, 3, 1}, {1, 2, 3})}, {{"size", int64_t{3}}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}}};
  EXPECT_THAT(Values(RunOp(lrn)), Pointwise(Near(1e-6), {1.0 / 6, 2.0 / 15, 3.0 / 14}));
}

}  // namespace
}  // namespace fusion::ops
