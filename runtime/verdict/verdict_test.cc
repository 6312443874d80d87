// Tests the verdicts of `verify` (equal, wrong, not compared) on tensors made to fool it.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/verdict/compare.h"
#include "runtime/verdict/judge.h"
#include "runtime/verdict/local_scale.h"
#include "runtime/verdict/sensitivity.h"
#include "runtime/verdict/tied_rows.h"
#include "runtime/verdict/ulps.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMask = std::numeric_limits<float>::lowest();
const double kNan = std::nan("");

Tensor F32(const std::vector<double>& values) {
  return Tensor::From(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

Tensor Shaped(const Shape& shape, const std::vector<double>& values) {
  return Tensor::From(DType::kF32, shape, values);
}

Verdict VerdictOf(const Tensor& actual, const Tensor& reference) { return CompareTensors(actual, reference)->verdict; }

TEST(CompareTensors, RelativeToTheScaleAround) {
  // 1e-5 beside values of size 1 is rounding, though it is everything where the reference is zero.
  const auto close = CompareTensors(F32({1, -1, 1e-5}), F32({1, -1, 0}));
  ASSERT_TRUE(close.ok());
  EXPECT_TRUE(close->ok());
  EXPECT_NEAR(close->max_abs_err, 1e-5, 1e-9);
  EXPECT_EQ(VerdictOf(F32({1, -1, 1e-2}), F32({1, -1, 0})), Verdict::kWrong);
  EXPECT_EQ(VerdictOf(F32({1e-30}), F32({0})), Verdict::kWrong);
  EXPECT_EQ(VerdictOf(F32({0, 0}), F32({0, 0})), Verdict::kOk);
}

TEST(CompareTensors, SaysWhereTheWorstElementIs) {
  std::vector<double> values(64, 2);
  const Tensor reference = Shaped({2, 32}, values);
  values[37] += 1e-5;
  values[40] -= 2e-4;
  const auto compared = CompareTensors(Shaped({2, 32}, values), reference);
  ASSERT_TRUE(compared.ok());
  EXPECT_TRUE(compared->ok());
  EXPECT_EQ(compared->worst, 40);
  EXPECT_EQ(IndexOf(compared->worst, reference.shape()), (std::vector<int64_t>{1, 8}));
  EXPECT_NEAR(compared->worst_actual, 1.9998, 1e-6);
  EXPECT_EQ(compared->worst_reference, 2);
  ASSERT_EQ(compared->row_errors.size(), 2u);
  EXPECT_EQ(compared->row_errors[0], 0);
  EXPECT_NEAR(compared->row_errors[1], 1e-4, 1e-6);
  EXPECT_EQ(CompareTensors(reference, reference)->worst, -1);
}

// Each case hides an error behind huge values. Every one would pass if the scale were the root mean square of the
// tensor or of the row.
TEST(CompareTensors, AMaskHidesNothing) {
  for (const double mask : {kMask, -1e9, -65504.0, -1e4, 300.0}) {
    SCOPED_TRACE(mask);
    // A whole row of masks beside small values.
    std::vector<double> values(64, 0.5);
    std::fill(values.begin(), values.begin() + 32, mask);
    const std::vector<double> right = values;
    EXPECT_EQ(VerdictOf(Shaped({2, 32}, right), Shaped({2, 32}, right)), Verdict::kOk);
    values[50] = 0.51;
    EXPECT_EQ(VerdictOf(Shaped({2, 32}, values), Shaped({2, 32}, right)), Verdict::kWrong);
    // One mask in the row.
    std::vector<double> one(32, 0.5);
    one[3] = mask;
    const Tensor one_right = F32(one);
    one[20] = 0.51;
    EXPECT_EQ(VerdictOf(F32(one), one_right), Verdict::kWrong);
  }
  // Nearly the whole row is masked, as in the first row of a causal mask.
  for (const double mask : {kMask, -1e9, -1e4}) {
    SCOPED_TRACE(mask);
    std::vector<double> most(32, mask);
    most[0] = 0.5;
    const Tensor most_right = F32(most);
    most[0] = 0.51;
    EXPECT_EQ(VerdictOf(F32(most), most_right), Verdict::kWrong);
    // Zeros have no size of their own, but a value in their place has.
    most[0] = 0;
    const Tensor zero_right = F32(most);
    most[0] = 0.5;
    EXPECT_EQ(VerdictOf(F32(most), zero_right), Verdict::kWrong);
  }
}

TEST(CompareTensors, ARowOfSmallNumbersIsHeldToItsOwnSize) {
  std::vector<double> values(64, 1000);
  std::fill(values.begin() + 32, values.end(), 0.01);
  const Tensor reference = Shaped({2, 32}, values);
  values[40] = 0.011;
  EXPECT_EQ(VerdictOf(Shaped({2, 32}, values), reference), Verdict::kWrong);
}

TEST(CompareTensors, AResidueOfWhatCancelsIsNoError) {
  std::vector<double> values(32, 400);
  values[7] = 0;
  const Tensor reference = F32(values);
  values[7] = 400 * 0x1p-24;
  EXPECT_EQ(VerdictOf(F32(values), reference), Verdict::kOk);
  // A whole row is such a residue, beside other numbers in the tensor.
  std::vector<double> rows(64, 400);
  std::fill(rows.begin() + 32, rows.end(), 0);
  const Tensor of_rows = Shaped({2, 32}, rows);
  rows[40] = 400 * 0x1p-24;
  EXPECT_EQ(VerdictOf(Shaped({2, 32}, rows), of_rows), Verdict::kOk);
}

TEST(CompareTensors, SubnormalsMayCountAsZero) {
  EXPECT_EQ(VerdictOf(F32({0, 1e-37}), F32({1e-39, 1e-37})), Verdict::kOk);
  EXPECT_EQ(VerdictOf(F32({0}), F32({1e-39})), Verdict::kOk);
  EXPECT_EQ(VerdictOf(F32({0}), F32({1e-37})), Verdict::kWrong);
}

TEST(CompareTensors, OneRuntimeMaySaturateWhereAnotherDoesNot) {
  std::vector<double> tail(32, 1e-9);
  tail[0] = 0.5;
  std::vector<double> other = tail;
  other[5] = 0;
  other[6] = 3e-22;
  other[7] = 1.6e-6;
  EXPECT_EQ(VerdictOf(F32(tail), F32(other)), Verdict::kOk);
  EXPECT_EQ(VerdictOf(F32(other), F32(tail)), Verdict::kOk);
  other[7] = 1e-3;
  EXPECT_EQ(VerdictOf(F32(other), F32(tail)), Verdict::kWrong);
  // Unlike a 1, a mask does not excuse its neighbours.
  tail[0] = other[0] = kMask;
  other = tail;
  other[7] = 1.1e-9;
  EXPECT_EQ(VerdictOf(F32(other), F32(tail)), Verdict::kWrong);
}

TEST(CompareTest, AnAbsoluteSlackForgivesWhatIsNearZero) {
  // The tail of a sigmoid in another runtime: 0 where the value is 2e-9.
  const Tensor ours = F32({2e-9, 1e-8, 2e-9, 3e-9}), theirs = F32({0, 1e-8, 0, 0});
  EXPECT_EQ(CompareTensors(ours, theirs)->verdict, Verdict::kWrong);
  const Slack slack{DType::kF32, 1e-8};
  EXPECT_EQ(CompareTensors(ours, theirs, slack)->verdict, Verdict::kOk);
  EXPECT_EQ(CompareTensors(ours, theirs, slack)->max_abs_err, CompareTensors(ours, theirs)->max_abs_err);
  // Larger differences are not forgiven.
  EXPECT_EQ(CompareTensors(F32({2e-8, 1e-8, 2e-9, 3e-9}), theirs, slack)->verdict, Verdict::kWrong);
}

TEST(CompareTensors, NansAndInfinitiesMustAgree) {
  const auto same = CompareTensors(F32({kNan, kInfinity, -kInfinity, 1}), F32({kNan, kInfinity, -kInfinity, 1}));
  EXPECT_TRUE(same->ok());
  EXPECT_EQ(same->special_matches, 3);
  const auto other = CompareTensors(F32({kNan, kInfinity, 1, 1}), F32({1, -kInfinity, kInfinity, 1}));
  EXPECT_EQ(other->verdict, Verdict::kWrong);
  EXPECT_EQ(other->special_mismatches, 3);
  EXPECT_EQ(VerdictOf(F32({kInfinity, -kInfinity}), F32({kInfinity, -kInfinity})), Verdict::kOk);
  // A NaN that the reference lacks is the worst element, whatever else differs.
  const auto worst = CompareTensors(F32({5, kNan, 5}), F32({1, 1, 1}));
  EXPECT_EQ(worst->worst, 1);
}

TEST(CompareTensors, NothingToCompareIsNoAgreement) {
  for (const Tensor& tensor : {F32({kNan, kNan}), F32({kNan, kInfinity}), Shaped({0, 4}, {}),
                               Tensor::From(DType::kI64, {0}, std::vector<int>{})}) {
    const auto compared = CompareTensors(tensor, tensor);
    ASSERT_TRUE(compared.ok());
    EXPECT_EQ(compared->verdict, Verdict::kNotCompared);
    EXPECT_FALSE(compared->why.empty());
  }
  EXPECT_EQ(VerdictOf(F32({kNan, kNan}), F32({1, 1})), Verdict::kWrong);
}

TEST(CompareTensors, OtherExtentsAreWrongAndOtherTypesAnError) {
  const auto compared = CompareTensors(F32({1, 2}), F32({1, 2, 3}));
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared->verdict, Verdict::kWrong);
  EXPECT_THAT(compared->why, testing::AllOf(HasSubstr("[2]"), HasSubstr("[3]")));
  EXPECT_FALSE(CompareTensors(Tensor::From(DType::kI64, {2}, std::vector<int>{1, 2}), F32({1, 2})).ok());
}

TEST(CompareTensors, IntegersAreExact) {
  const Tensor a = Tensor::From(DType::kI64, {2}, std::vector<int>{1, 2});
  const Tensor b = Tensor::From(DType::kI64, {2}, std::vector<int>{1, 3});
  EXPECT_EQ(VerdictOf(a, a), Verdict::kOk);
  EXPECT_EQ(VerdictOf(a, b), Verdict::kWrong);
  const Tensor large = Tensor::From(DType::kI64, {1}, std::vector<int64_t>{int64_t{1} << 60});
  const Tensor next = Tensor::From(DType::kI64, {1}, std::vector<int64_t>{(int64_t{1} << 60) + 1});
  EXPECT_EQ(VerdictOf(large, next), Verdict::kWrong);
}

TEST(RowElements, AreThoseOfAsManyTrailingAxesAsHoldSixteen) {
  EXPECT_EQ(RowElements({}), 1);
  EXPECT_EQ(RowElements({100, 4}), 400);
  EXPECT_EQ(RowElements({100, 1, 800, 800}), 800);
  EXPECT_EQ(RowElements({1, 1000, 1, 1}), 1000);
  EXPECT_EQ(RowElements({128, 5, 4}), 20);
  EXPECT_EQ(RowElements({0, 4}), 1);
}

TEST(UlpDistance, CountsRepresentableNumbers) {
  EXPECT_EQ(UlpDistance(DType::kF32, 1, 1), 0u);
  EXPECT_EQ(UlpDistance(DType::kF32, 1, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(UlpDistance(DType::kF32, 2, std::nextafter(2.0f, 0.0f)), 1u);
  EXPECT_EQ(UlpDistance(DType::kF32, 0.0, -0.0), 0u);
  const double least = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(UlpDistance(DType::kF32, least, -least), 2u);
  EXPECT_EQ(UlpDistance(DType::kF32, std::numeric_limits<float>::min(), 0), uint64_t{1} << 23);
  EXPECT_EQ(UlpDistance(DType::kF32, 1, 2), uint64_t{1} << 23);
  EXPECT_EQ(UlpDistance(DType::kF16, 1, 1 + 0x1p-10), 1u);
  EXPECT_EQ(UlpDistance(DType::kF16, 0x1p-24, 0), 1u);
  EXPECT_EQ(UlpDistance(DType::kF16, 65504, -65504), 2u * 0x7bff);
  EXPECT_EQ(UlpDistance(DType::kBF16, 1, 1 + 0x1p-7), 1u);
  EXPECT_EQ(UlpDistance(DType::kF64, 1, 1 + 0x1p-52), 1u);
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(UlpDistance(DType::kF64, most, -most), 2u * 0x7fefffffffffffffu);
}

TEST(Percentile999, IsWhatAThousandthExceeds) {
  std::vector<uint64_t> two = {9, 7};
  EXPECT_EQ(Percentile999(&two, 2), 9u);
  EXPECT_EQ(Percentile999(&two, 1000), 7u);  // one of a thousand may exceed it
  EXPECT_EQ(Percentile999(&two, 2000), 0u);
  std::vector<uint64_t> none;
  EXPECT_EQ(Percentile999(&none, 5), 0u);
}

// Two detections whose scores tie, in either order; the third has its own score.
struct Detections {
  Tensor boxes, labels, scores;
  std::vector<Tensor> all() const { return {boxes, labels, scores}; }
};

Detections ThreeDetections(bool swapped, double second_score) {
  const std::vector<double> first = {10, 20, 30, 40}, second = {50, 60, 70, 80};
  std::vector<double> boxes = swapped ? second : first;
  const std::vector<double>& other = swapped ? first : second;
  boxes.insert(boxes.end(), other.begin(), other.end());
  boxes.insert(boxes.end(), {1, 2, 3, 4});
  return {Tensor::From(DType::kF32, {3, 4}, boxes),
          Tensor::From(DType::kI64, {3}, swapped ? std::vector<int>{8, 7, 9} : std::vector<int>{7, 8, 9}),
          F32({0.9, second_score, 0.1})};
}

std::vector<Comparison> CompareAll(const std::vector<Tensor>& actual, const std::vector<Tensor>& reference) {
  std::vector<Comparison> compared;
  for (size_t i = 0; i < actual.size(); ++i) compared.push_back(*CompareTensors(actual[i], reference[i]));
  return compared;
}

TEST(TiedRows, TradePlacesWhereTheirScoresAgree) {
  const auto reference = ThreeDetections(false, 0.9).all(), actual = ThreeDetections(true, 0.9000001).all();
  const Reordering reordered = ReorderTiedRows(actual, reference, CompareAll(actual, reference));
  EXPECT_EQ(reordered.moved_rows, (std::vector<int64_t>{2, 2, 2}));
  for (const Comparison& compared : CompareAll(reordered.actual, reference)) EXPECT_TRUE(compared.ok());
}

TEST(TiedRows, StayWhereScoresDifferOrRowsDo) {
  const std::vector<int64_t> none = {0, 0, 0};
  const auto apart = ThreeDetections(false, 0.8).all(), traded = ThreeDetections(true, 0.8).all();
  EXPECT_EQ(ReorderTiedRows(traded, apart, CompareAll(traded, apart)).moved_rows, none);
  const auto reference = ThreeDetections(false, 0.9).all();
  auto wrong = ThreeDetections(true, 0.9).all();
  wrong[1] = Tensor::From(DType::kI64, {3}, std::vector<int>{7, 8, 9});  // a label that no longer belongs to its box
  const Reordering reordered = ReorderTiedRows(wrong, reference, CompareAll(wrong, reference));
  EXPECT_FALSE(CompareAll(reordered.actual, reference)[0].ok() && CompareAll(reordered.actual, reference)[1].ok());
  // Without an output that sorts the rows, their order is part of the result.
  EXPECT_EQ(ReorderTiedRows({wrong[0]}, {reference[0]}, CompareAll({wrong[0]}, {reference[0]})).moved_rows,
            (std::vector<int64_t>{0}));
}

TEST(TiedRows, OneRowThatDiffersKeepsNoOtherFromItsPlace) {
  const auto reference = ThreeDetections(false, 0.9).all();
  auto actual = ThreeDetections(true, 0.9).all();
  actual[0].SetDouble(8, 500);  // the box of the third row, which ties with none
  const auto compared = CompareOutputs(actual, reference);
  ASSERT_TRUE(compared.ok());
  EXPECT_EQ(compared->moved_rows, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(compared->outputs[0].verdict, Verdict::kWrong);
  EXPECT_EQ(IndexOf(compared->outputs[0].worst, {3, 4}), (std::vector<int64_t>{2, 0}));
  EXPECT_TRUE(compared->outputs[1].ok());
}

// A difference from a number near by loses the digits that both share: 1e4 times as sensitive as a copy.
absl::StatusOr<std::vector<Tensor>> CopyAndDifference(const std::vector<Tensor>& x) {
  Tensor difference = F32(std::vector<double>(8));
  for (int64_t i = 0; i < 8; ++i) difference.SetDouble(i, x[0].GetDouble(i) - 0.9999 * static_cast<double>(i + 1));
  return std::vector<Tensor>{x[0], difference};
}

TEST(Sensitivity, IsThatOfAnOutputToItsInputs) {
  const std::vector<Tensor> inputs = {F32({1, 2, 3, 4, 5, 6, 7, 8})};
  const auto outputs = CopyAndDifference(inputs);
  ASSERT_TRUE(outputs.ok());
  std::vector<Movement> moved;
  const absl::Status status = AddRuns(CopyAndDifference, inputs, *outputs, 0, kFewRuns, &moved);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(moved[0].most(), 1e-8);
  EXPECT_LT(moved[0].most(), 4e-7);
  EXPECT_GT(moved[1].most(), 1e-4);
  EXPECT_LT(moved[1].most(), 1e-2);
  EXPECT_EQ(moved[0].extents, "");
}

TEST(Allow, WhatRoundingExplainsAndNoMore) {
  const Comparison off = *CompareTensors(F32({1, 1.01}), F32({1, 1}));
  Comparison little = off;
  Allow({{1e-4}, ""}, &little);
  EXPECT_EQ(little.verdict, Verdict::kWrong);
  EXPECT_EQ(little.tolerance, ToleranceOf(DType::kF32));  // never less than the fixed tolerance
  Comparison enough = off;
  Allow({{5e-3}, ""}, &enough);
  EXPECT_TRUE(enough.ok());
  EXPECT_NEAR(enough.tolerance, 0.02, 1e-12);
}

TEST(Allow, NothingPassesBeyondThreePercent) {
  Comparison half = *CompareTensors(F32({1, 1.5}), F32({1, 1}));
  Allow({{kInfinity}, ""}, &half);
  EXPECT_EQ(half.verdict, Verdict::kNotCompared);
  EXPECT_THAT(half.why, HasSubstr("rounding decides 1 of its 1 rows"));
}

TEST(Allow, ARowThatMovesExcusesNoOther) {
  std::vector<double> values(64, 1);
  const Tensor reference = Shaped({2, 32}, values);
  values[40] = 1.5;
  Comparison second = *CompareTensors(Shaped({2, 32}, values), reference);
  Allow({{kInfinity, 1e-6}, ""}, &second);
  EXPECT_EQ(second.verdict, Verdict::kWrong);
  EXPECT_THAT(second.why, HasSubstr("1 of its 2 rows differ by more than roundings explain: row 1 by 0.5"));
}

// A model whose output moves in one run of many, as some rows of a large output do.
TEST(JudgeOutputs, RunsMoreWhereLittleIsWrong) {
  int runs = 0;
  const ModelRun run = [&](const std::vector<Tensor>&) -> absl::StatusOr<std::vector<Tensor>> {
    return std::vector<Tensor>{F32({++runs == 10 ? 1.001 : 1, 1})};
  };
  const std::vector<Tensor> inputs = {F32({1})}, reference = {F32({1, 1})};
  const auto verdict_of = [&](double actual) {
    runs = 0;
    const auto judged = JudgeOutputs(inputs, {F32({actual, 1})}, reference, run, MadeByRun::kReference, Slack{});
    EXPECT_TRUE(judged.ok()) << judged.status();
    return judged->outputs[0].verdict;
  };
  EXPECT_EQ(verdict_of(1.003), Verdict::kOk);
  EXPECT_EQ(runs, kManyRuns);
  EXPECT_EQ(verdict_of(1.005), Verdict::kWrong);
  EXPECT_EQ(runs, kManyRuns);
  EXPECT_EQ(verdict_of(1.5), Verdict::kWrong);
  EXPECT_EQ(runs, kFewRuns);
}

TEST(JudgeOutputs, ExtentsThatMoveAreNotCompared) {
  // A model that keeps the inputs above 1, of inputs that are 1 up to rounding.
  const ModelRun run = [](const std::vector<Tensor>& x) -> absl::StatusOr<std::vector<Tensor>> {
    std::vector<double> kept;
    for (int64_t i = 0; i < x[0].num_elements(); ++i) {
      if (x[0].GetDouble(i) > 1) kept.push_back(x[0].GetDouble(i));
    }
    return std::vector<Tensor>{F32(kept)};
  };
  std::vector<double> values(20, 1);
  values[0] = 2;
  const std::vector<Tensor> inputs = {F32(values)}, reference = *run(inputs);
  // Neither other extents nor other numbers of the same extents can be judged.
  for (const Tensor& actual : {F32({2, 1}), F32({2.5})}) {
    const auto judged = JudgeOutputs(inputs, {actual}, reference, run, MadeByRun::kReference, Slack{});
    ASSERT_TRUE(judged.ok()) << judged.status();
    EXPECT_EQ(judged->outputs[0].verdict, Verdict::kNotCompared);
    EXPECT_THAT(judged->outputs[0].why, HasSubstr("its extents become"));
  }
  // If the extents do not move, other extents are wrong.
  const ModelRun copy = [](const std::vector<Tensor>& x) -> absl::StatusOr<std::vector<Tensor>> { return x; };
  const auto judged = JudgeOutputs(inputs, {F32({2, 1})}, inputs, copy, MadeByRun::kReference, Slack{});
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_EQ(judged->outputs[0].verdict, Verdict::kWrong);
}

TEST(JudgeOutputs, TheJudgedProgramTellsWhereTheReferenceCannotRun) {
  const std::vector<Tensor> inputs = {F32({1, 2, 3, 4, 5, 6, 7, 8})};
  const std::vector<Tensor> actual = *CopyAndDifference(inputs);
  std::vector<Tensor> reference = {actual[0], F32(std::vector<double>(8))};
  for (int64_t i = 0; i < 8; ++i) reference[1].SetDouble(i, actual[1].GetDouble(i) * 1.002);
  const auto judged = JudgeOutputs(inputs, actual, reference, CopyAndDifference, MadeByRun::kActual, Slack{});
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_TRUE(judged->outputs[1].ok());
  EXPECT_GT(judged->outputs[1].tolerance, ToleranceOf(DType::kF32));
}

}  // namespace
}  // namespace fusion
