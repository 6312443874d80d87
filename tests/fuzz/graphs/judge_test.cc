#include "tests/fuzz/graphs/judge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ecg/run_checks.h"
#include "compiler/ecg/text.h"

namespace fusion::fuzz {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor Floats(const std::vector<double>& values) {
  return Tensor::From<double>(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}

// The runs agree on `expected`, except for the additional `runs`.
absl::Status Judge(double expected, double actual, Coverage* coverage, const std::vector<double>& runs = {},
                   Subnormal subnormal = Subnormal::kKept) {
  Expectation expectation;
  expectation.outputs = {Floats({expected})};
  expectation.perturbed = {{Floats({expected})}};
  for (const double run : runs) expectation.perturbed.push_back({Floats({run})});
  return Agree(expectation, {Floats({actual})}, subnormal, coverage);
}

TEST(JudgeTest, KindsAreCompared) {
  Coverage coverage;
  for (const double kind : {kNan, kInf, -kInf}) {
    EXPECT_TRUE(Judge(kind, kind, &coverage).ok()) << kind;
    for (const double other : {kNan, kInf, -kInf, 1.0, 0.0}) {
      if (other == kind || (std::isnan(other) && std::isnan(kind))) continue;
      EXPECT_FALSE(Judge(kind, other, &coverage).ok()) << kind << " " << other;
      EXPECT_FALSE(Judge(other, kind, &coverage).ok()) << other << " " << kind;
    }
  }
  EXPECT_EQ(coverage.special, 3);
  EXPECT_EQ(coverage.exact + coverage.rounded + coverage.loose + coverage.uncertain, 0);
}

TEST(JudgeTest, WhatRunsDisagreeAboutIsCountedAsNotCompared) {
  Coverage coverage;
  EXPECT_TRUE(Judge(1, kNan, &coverage, {kInf}).ok());
  EXPECT_TRUE(Judge(kNan, 5, &coverage, {1}).ok());
  EXPECT_EQ(coverage.uncertain, 2);
  EXPECT_EQ(coverage.compared(), 0);
}

TEST(JudgeTest, ExactNumbersAreEqual) {
  Coverage coverage;
  EXPECT_TRUE(Judge(3, 3, &coverage).ok());
  EXPECT_FALSE(Judge(3, 3.0000002, &coverage).ok());
  EXPECT_FALSE(Judge(0, 1e-30, &coverage).ok());
  EXPECT_EQ(coverage.exact, 1);
}

TEST(JudgeTest, AToleranceLargerThanTheElementIsCountedApart) {
  Coverage coverage;
  EXPECT_TRUE(Judge(0.1, 0.1000001, &coverage, {0.10000005}).ok());
  EXPECT_EQ(coverage.rounded, 1);
  EXPECT_TRUE(Judge(0.1, 0.3, &coverage, {0.2}).ok());
  EXPECT_EQ(coverage.loose, 1);
  EXPECT_FALSE(Judge(0.1, 1.3, &coverage, {0.2}).ok());
}

TEST(JudgeTest, SubnormalNumbersMayBeZeroWhereThatIsPromised) {
  Coverage coverage;
  EXPECT_FALSE(Judge(0x1p-130, 0, &coverage).ok());
  EXPECT_TRUE(Judge(0x1p-130, 0, &coverage, {}, Subnormal::kMayBeZero).ok());
  EXPECT_FALSE(Judge(0x1p-120, 0, &coverage, {}, Subnormal::kMayBeZero).ok());
}

TEST(JudgeTest, WhatFollowsFromASubnormalNumberIsZeroEitherWay) {
  // 2^-130 · 2^20 is normal; it is zero if the operand counts as zero.

  const auto parsed = ecg::Parse(
      "graph g(%x: f32[1]) {\n  %c: f32[] = const {1048576.0}\n"
      "  %v: f32[1] = Mul(%x, %c)\n  return %v\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto expected = Expect(*parsed, {Floats({0x1p-130})}, 6);
  ASSERT_TRUE(expected.ok()) << expected.status();
  Coverage coverage;
  EXPECT_TRUE(Agree(*expected, {Floats({0x1p-110})}, Subnormal::kKept, &coverage).ok());
  EXPECT_FALSE(Agree(*expected, {Floats({0})}, Subnormal::kKept, &coverage).ok());
  EXPECT_TRUE(Agree(*expected, {Floats({0})}, Subnormal::kMayBeZero, &coverage).ok());
}

TEST(JudgeTest, SubnormalNumbersWithinAnOperatorMayBeZeroToo) {
  // The boxes share 1e-40 of what they cover, which is more than nothing unless it counts as zero.
  const auto parsed = ecg::Parse(
      "graph g(%boxes: f32[1, 2, 4]) {\n  %scores: f32[1, 1, 2] = const {1.0, 0.5}\n  %most: i64[1] = const {2}\n"
      "  %overlap: f32[1] = const {0.0}\n  %score: f32[1] = const {0.0}\n  %valid: i64[1] = const {2}\n"
      "  %v: i64[2, 3], %n: i64[] = NonMaxSuppression(%boxes, %scores, %most, %overlap, %score, "
      "%valid) {limit = 2}\n"
      "  return %n\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Tensor boxes = Tensor::From<double>(DType::kF32, {1, 2, 4}, {-1, -1, 1e-20, 1e-20, 0, 0, 1, 1});
  const auto expected = Expect(*parsed, {boxes}, 6);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto count = [](int64_t n) { return std::vector<Tensor>{Tensor::From<int64_t>(DType::kI64, {}, {n})}; };
  Coverage coverage;
  EXPECT_TRUE(Agree(*expected, count(1), Subnormal::kKept, &coverage).ok());
  EXPECT_FALSE(Agree(*expected, count(2), Subnormal::kKept, &coverage).ok());
  EXPECT_TRUE(Agree(*expected, count(2), Subnormal::kMayBeZero, &coverage).ok());
  EXPECT_EQ(coverage.uncertain, 1);
}

// A rule may rewrite the sum of two numbers that are exact: both are multiplied by a third and divided again.
absl::Status JudgeRewritten(const std::string& rewritten, const std::vector<double>& actual) {
  const auto source = ecg::Parse("graph g(%x: f32[4]) {\n  %v: f32[4] = Add(%x, %x)\n  return %v\n}\n");
  EXPECT_TRUE(source.ok()) << source.status();
  const std::vector<Tensor> inputs = {Floats({3, 5, 7, 0})};
  auto expected = Expect(source.value(), inputs, 6);
  EXPECT_TRUE(expected.ok()) << expected.status();
  Coverage coverage;
  EXPECT_FALSE(Agree(*expected, {Floats(actual)}, Subnormal::kKept, &coverage).ok()) << "only rewriting rounds";
  const auto graph = ecg::Parse(rewritten);
  EXPECT_TRUE(graph.ok()) << graph.status();
  const absl::Status widened = WidenByRewriting(source.value(), graph.value(), inputs, 100, &*expected);
  EXPECT_TRUE(widened.ok()) << widened;
  return Agree(*expected, {Floats(actual)}, Subnormal::kKept, &coverage);
}

TEST(JudgeTest, RulesMayAddRoundingButNoError) {
  const std::string rounds =
      "graph g(%x: f32[4]) {\n  %c: f32[] = const {0.3}\n  %p: f32[4] = Mul(%x, %c)\n  %q: f32[4] = Add(%p, %p)\n"
      "  %v: f32[4] = Div(%q, %c)\n  return %v\n}\n";
  EXPECT_TRUE(JudgeRewritten(rounds, {6, 10.000001, 14, 0}).ok());
  EXPECT_FALSE(JudgeRewritten(rounds, {6, 10.00005, 14, 0}).ok()) << "more than rounding";
  EXPECT_FALSE(JudgeRewritten(rounds, {6, 10, 14, 1e-9}).ok()) << "an element that rewriting keeps exact";
  const std::string wrong =
      "graph g(%x: f32[4]) {\n  %c: f32[] = const {0.3}\n  %d: f32[] = const {0.25}\n  %p: f32[4] = Mul(%x, %c)\n"
      "  %q: f32[4] = Add(%p, %p)\n  %v: f32[4] = Div(%q, %d)\n  return %v\n}\n";
  EXPECT_FALSE(JudgeRewritten(wrong, {7.2, 12, 16.8, 0}).ok()) << "a rule that computes something else";
  const std::string cancels =
      "graph g(%x: f32[4]) {\n  %c: f32[] = const {1000000.0}\n  %p: f32[4] = Add(%x, %c)\n  %s: f32[4] = Add(%p, %x)\n"
      "  %d: f32[] = const {0.3}\n  %e: f32[4] = Mul(%s, %d)\n  %f: f32[4] = Div(%e, %d)\n"
      "  %v: f32[4] = Sub(%f, %c)\n  return %v\n}\n";
  EXPECT_FALSE(JudgeRewritten(cancels, {6.125, 10, 14, 0}).ok()) << "a rule that cancels digits";
}

// Rules add constants, which rounds: 3.625 + x - 1e-30 of x = -3.625 is -1e-30 in the source's order, and 0 behind the
// rule. An element in which nothing cancels has no such excuse.
TEST(JudgeTest, ConstantsThatRulesMakeAreRounded) {
  const auto source = ecg::Parse(
      "graph g(%x: f32[3]) {\n  %a: f32[3] = const {3.625, 0.0, 1.0}\n  %b: f32[3] = const {-1e-30, -1e-30, 0.0}\n"
      "  %s: f32[3] = Add(%x, %a)\n  %v: f32[3] = Add(%s, %b)\n  return %v\n}\n");
  const auto graph = ecg::Parse(
      "graph g(%x: f32[3]) {\n  %c: f32[3] = const {3.625, -1e-30, 1.0}\n  %v: f32[3] = Add(%x, %c)\n  return %v\n}\n");
  ASSERT_TRUE(source.ok() && graph.ok()) << source.status() << graph.status();
  const std::vector<Tensor> inputs = {Floats({-3.625, 0, 4})};
  auto expected = Expect(source.value(), inputs, 6);
  ASSERT_TRUE(expected.ok()) << expected.status();
  Coverage coverage;
  EXPECT_FALSE(Agree(*expected, {Floats({0, -1e-30, 5})}, Subnormal::kKept, &coverage).ok()) << "only rewriting rounds";
  ASSERT_TRUE(WidenByRewriting(source.value(), graph.value(), inputs, 100, &*expected).ok());
  EXPECT_TRUE(Agree(*expected, {Floats({0, -1e-30, 5})}, Subnormal::kKept, &coverage).ok());
  EXPECT_FALSE(Agree(*expected, {Floats({0, 0, 5})}, Subnormal::kKept, &coverage).ok());
  EXPECT_FALSE(Agree(*expected, {Floats({1e-4, -1e-30, 5})}, Subnormal::kKept, &coverage).ok()) << "more than rounding";
}

// 1 / (a - b) of equal numbers is an infinity; with a factor moved to both, rounding decides whether it is one. A rule
// that makes a number of it in every run is wrong.
TEST(JudgeTest, RulesMayLeaveTheKindToRounding) {
  const auto judge = [](const std::string& rewritten) {
    const auto source = ecg::Parse(
        "graph g(%a: f32[1], %b: f32[1]) {\n  %d: f32[1] = Sub(%a, %b)\n  %v: f32[1] = Reciprocal(%d)\n  return %v\n}\n");
    EXPECT_TRUE(source.ok()) << source.status();
    const std::vector<Tensor> inputs = {Floats({3}), Floats({3})};
    auto expected = Expect(source.value(), inputs, 6);
    EXPECT_TRUE(expected.ok()) << expected.status();
    Coverage coverage;
    EXPECT_FALSE(Agree(*expected, {Floats({1e9})}, Subnormal::kKept, &coverage).ok()) << "nothing rounds";
    const auto graph = ecg::Parse(rewritten);
    EXPECT_TRUE(graph.ok()) << graph.status();
    const absl::Status widened = WidenByRewriting(source.value(), graph.value(), inputs, 100, &*expected);
    EXPECT_TRUE(widened.ok()) << widened;
    return Agree(*expected, {Floats({1e9})}, Subnormal::kKept, &coverage);
  };
  const std::string head = "graph g(%a: f32[1], %b: f32[1]) {\n  %c: f32[] = const {0.3}\n";
  EXPECT_TRUE(judge(head + "  %p: f32[1] = Mul(%a, %c)\n  %q: f32[1] = Mul(%b, %c)\n  %d: f32[1] = Sub(%p, %q)\n"
                           "  %e: f32[1] = Div(%d, %c)\n  %v: f32[1] = Reciprocal(%e)\n  return %v\n}\n")
                  .ok());
  EXPECT_FALSE(judge(head + "  %d: f32[1] = Add(%a, %b)\n  %v: f32[1] = Reciprocal(%d)\n  return %v\n}\n").ok());
}

// erf(1 / (a - b)) of equal numbers is 1; with a factor moved to both, rounding decides between 1 and -1, as it does
// where a is not exact. Where no rounding of the inputs decides, no rule may.
TEST(JudgeTest, RulesMayDecideWhatTheInputsRoundingDecides) {
  const std::string function = "  %r: f32[1] = Reciprocal(%d)\n  %v: f32[1] = Erf(%r)\n  return %v\n}\n";
  const std::string head = "graph g(%a: f32[1], %b: f32[1]) {\n  %c: f32[] = const {0.3}\n";
  const auto judge = [&](double a, double b, double actual) {
    const auto source = ecg::Parse(head + "  %s: f32[1] = Sub(%a, %b)\n  %d: f32[1] = Mul(%s, %c)\n" + function);
    const auto graph = ecg::Parse(head + "  %e: f32[] = const {0.30000001}\n  %p: f32[1] = Mul(%a, %c)\n"
                                         "  %q: f32[1] = Mul(%b, %e)\n  %d: f32[1] = Sub(%p, %q)\n" +
                                  function);
    EXPECT_TRUE(source.ok() && graph.ok()) << source.status() << graph.status();
    const std::vector<Tensor> inputs = {Floats({a}), Floats({b})};
    auto expected = Expect(source.value(), inputs, 6);
    EXPECT_TRUE(expected.ok()) << expected.status();
    Coverage coverage;
    EXPECT_FALSE(Agree(*expected, {Floats({actual})}, Subnormal::kKept, &coverage).ok()) << "nothing rounds";
    EXPECT_TRUE(WidenByRewriting(source.value(), graph.value(), inputs, 100, &*expected).ok());
    return Agree(*expected, {Floats({actual})}, Subnormal::kKept, &coverage).ok();
  };
  EXPECT_TRUE(judge(3, 3, -1));
  EXPECT_FALSE(judge(3, 2.5, -1));
  EXPECT_FALSE(judge(3, 2.5, 0.99));
}

// A window of three taps over 16 channels: eight results, two tiles of four. All numbers are small integers.
class FilteredJudgeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto parsed = ecg::Parse(
        "graph g(%x: f32[1, 16, 10]) {\n  %w: f32[16, 16, 3] = const #404000003f800000\n"
        "  %v: f32[1, 16, 8] = Conv(%x, %w)\n  return %v\n}\n");
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    graph_ = *parsed;
  }

  static Tensor Input(double first) {
    Tensor x(DType::kF32, {1, 16, 10});
    for (int64_t i = 0; i < x.num_elements(); ++i) x.SetDouble(i, static_cast<double>(i % 7) - 3);
    x.SetDouble(0, first);
    return x;
  }

  // The judgement of the true results after `changes` of elements; `filtered`: filtering is allowed for.
  absl::Status Judge(double first_input, const std::vector<std::pair<int64_t, double>>& changes, bool filtered = true) {
    const Tensor x = Input(first_input);
    auto expected = Expect(graph_, {x}, 6);
    EXPECT_TRUE(expected.ok()) << expected.status();
    Tensor actual(DType::kF32, {1, 16, 8});
    for (int64_t i = 0; i < actual.num_elements(); ++i) actual.SetDouble(i, expected->outputs[0].GetDouble(i));
    for (const auto& [element, value] : changes) actual.SetDouble(element, value);
    if (filtered) {
      const absl::Status added = AddFilteredRuns(graph_, {x}, 6, &*expected);
      EXPECT_TRUE(added.ok()) << added;
    }
    Coverage coverage;
    return Agree(*expected, {actual}, Subnormal::kMayBeZero, &coverage);
  }
  double Result(double first_input, int64_t element) {
    return Expect(graph_, {Input(first_input)}, 1)->outputs[0].GetDouble(element);
  }

  ecg::Graph graph_;
};

TEST_F(FilteredJudgeTest, FilteringMayRoundSumsOfIntegers) {
  const double exact = Result(2, 1);
  EXPECT_TRUE(Judge(2, {}, false).ok());
  EXPECT_FALSE(Judge(2, {{1, exact * (1 + 1e-6)}}, false).ok()) << "only filtering rounds";
  EXPECT_TRUE(Judge(2, {{1, exact * (1 + 1e-6)}}).ok());
  EXPECT_FALSE(Judge(2, {{1, exact + 1}}).ok()) << "more than rounding";
}

TEST_F(FilteredJudgeTest, AnInfinityStaysInItsPlace) {
  EXPECT_TRUE(Judge(kInf, {}).ok());
  EXPECT_FALSE(Judge(kInf, {{3, kNan}}, false).ok());
  EXPECT_FALSE(Judge(kInf, {{3, kNan}}).ok()) << "the tile reads an infinity, and this result does not";
}

// A pass that makes a mistake: it adds a thousandth to one element of one matrix, counted over the elements of the
// matrices that transform the input, the filter and the result. Sets `*done` where the element exists.
FilterPass WrongAt(int64_t tiles, int64_t element, bool* done) {
  return [=](const te::Program& program, int64_t outputs) {
    std::optional<FilteredProgram> filtered = FilterMinimally(program, outputs);
    if (!filtered || outputs != tiles) return filtered;
    int64_t left = element;
    const auto spoil = [&](Tensor* matrix) {
      if (left >= 0 && left < matrix->num_elements()) {
        matrix->SetDouble(left, matrix->GetDouble(left) + 1e-3);
        *done = true;
      }
      left -= matrix->num_elements();
    };
    for (te::TensorInfo& info : filtered->program.tensors) {
      if (info.name == "filter_in" || info.name == "filter_out") spoil(&*info.constant);
    }
    spoil(&filtered->transform.by_dimension[0].second);
    return filtered;
  };
}

// Returns the results of kernels that filter as `filter` does, in tiles of four.
std::vector<Tensor> ComputedBy(const FilterPass& filter, const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  const auto lowered = ecg::LoweredGraph::Make(graph);
  EXPECT_TRUE(lowered.ok()) << lowered.status();
  std::optional<FilteredProgram> filtered = filter(lowered->program(), 4);
  EXPECT_TRUE(filtered.has_value());
  filtered->program.tensors[filtered->filter].constant =
      movement::Transformed(filtered->transform, *lowered->ConstantOf(filtered->source));
  auto outputs = lowered->RunAs(filtered->program, inputs, {.perturb_seed = 4, .perturb_sparsity = 63});
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  return *std::move(outputs);
}

// A window of 3 × 3 taps, and one function behind it.
class FilteredBeforeTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto parsed =
        ecg::Parse(absl::StrCat("graph g(%x: f32[1, 16, 6, 6]) {\n  %w: f32[16, 16, 3, 3] = const #404000003f800000\n"
                                "  %v: f32[1, 16, 4, 4] = Conv(%x, %w)\n  %y: f32[1, 16, 4, 4] = ",
                                GetParam(), "(%v)\n  return %y\n}\n"));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    graph_ = *parsed;
  }

  // `far`: a factor of the inputs that only the last rows and columns of results read; `near`: of the others.
  void Draw(double near, double far) {
    x_ = Tensor(DType::kF32, {1, 16, 6, 6});
    for (int64_t i = 0; i < x_.num_elements(); ++i) {
      const bool is_far = i % 6 > 3 && i / 6 % 6 > 3;
      x_.SetDouble(i, static_cast<double>(i * 37 % 101 - 50) * (is_far ? far : near));
    }
    auto expected = Expect(graph_, {x_}, 6);
    ASSERT_TRUE(expected.ok()) << expected.status();
    expected_ = *std::move(expected);
  }

  ecg::Graph graph_;
  Tensor x_;
  Expectation expected_;
};
INSTANTIATE_TEST_SUITE_P(Functions, FilteredBeforeTest, ::testing::Values("Identity", "Sigmoid", "Reciprocal", "Neg"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(FilteredBeforeTest, RoundingOfTheWindowIsAllowedWhateverReadsIt) {
  Draw(1e-3, 1e4);  // results of a million beside results of about one, in one tile
  const std::vector<Tensor> actual = ComputedBy(FilterMinimally, graph_, {x_});
  Coverage coverage;
  EXPECT_FALSE(Agree(expected_, actual, Subnormal::kMayBeZero, &coverage).ok()) << "only filtering rounds so far";
  const absl::Status added = AddFilteredRuns(graph_, {x_}, 6, &expected_);
  EXPECT_TRUE(added.ok()) << added;
  const absl::Status agreed = Agree(expected_, actual, Subnormal::kMayBeZero, &coverage);
  EXPECT_TRUE(agreed.ok()) << agreed;
}

TEST_P(FilteredBeforeTest, EveryWrongCoefficientIsRefused) {
  Draw(3, 3);  // results of hundreds, of which a sigmoid leaves no more than their sign
  for (const int64_t tiles : {2, 4}) {
    int64_t element = 0;
    for (bool done = true; done; ++element) {
      done = false;
      Expectation expected = expected_;
      const absl::Status status = AddFilteredRuns(graph_, {x_}, 1, &expected, WrongAt(tiles, element, &done));
      EXPECT_EQ(absl::IsFailedPrecondition(status), done) << tiles << " " << element << " " << status;
    }
    // The matrices of F(2, 3) have 16, 12 and 8 elements, those of F(4, 3) 36, 18 and 24.
    EXPECT_EQ(element - 1, tiles == 2 ? 36 : 78);
  }
}

TEST_P(FilteredBeforeTest, AKernelWithAWrongCoefficientIsRefused) {
  Draw(3e-3, 3e-3);
  const absl::Status added = AddFilteredRuns(graph_, {x_}, 6, &expected_);
  ASSERT_TRUE(added.ok()) << added;
  for (int64_t element = 0; element < 78; ++element) {
    bool done = false;
    const std::vector<Tensor> wrong = ComputedBy(WrongAt(4, element, &done), graph_, {x_});
    Coverage coverage;
    EXPECT_TRUE(done);
    EXPECT_FALSE(Agree(expected_, wrong, Subnormal::kMayBeZero, &coverage).ok()) << element;
  }
}

TEST_F(FilteredJudgeTest, WithoutAWindowNothingIsAdded) {
  const auto parsed = ecg::Parse("graph g(%x: f32[4]) {\n  %v: f32[4] = Add(%x, %x)\n  return %v\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  auto expected = Expect(*parsed, {Floats({3, 5, 7, 0})}, 1);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(AddFilteredRuns(*parsed, {Floats({3, 5, 7, 0})}, 1, &*expected)));
  EXPECT_EQ(expected->perturbed.size(), 1u);
}

TEST(JudgeTest, AnotherOrderOfSummandsMayLoseOthers) {
  // 2^100 and -2^100 stand beside each other; where other summands come between them, those are lost. A quarter of what
  // is left has an Atanh unless none is lost.
  const auto parsed = ecg::Parse(
      "graph g(%x: f32[8]) {\n  %c: f32[] = const {0.25}\n  %axes: i64[1] = const {0}\n"
      "  %sum: f32[1] = ReduceSum(%x, %axes)\n  %part: f32[1] = Mul(%sum, %c)\n  %v: f32[1] = Atanh(%part)\n"
      "  return %v\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const auto expected = Expect(*parsed, {Floats({0x1p100, -0x1p100, 1, 1, 1, 1, 1, 1})}, 100);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(std::isnan(expected->outputs[0].GetDouble(0)));
  Coverage coverage;
  EXPECT_TRUE(Agree(*expected, {Floats({std::atanh(0.75)})}, Subnormal::kKept, &coverage).ok());
  EXPECT_EQ(coverage.uncertain, 1);
}

// A quotient of a value by itself, which two kernels compute: each may round it, but by no more than rounding.
TEST(JudgeTest, ReadersMayComputeAValueForThemselves) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[64]) {
  %t: f32[64] = Tan(%x)
  %a: f32[64] = Abs(%t)
  %b: f32[64] = Neg(%t)
  %q: f32[64] = Div(%a, %b)
  return %q
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<double> x;
  for (int i = 1; i <= 64; ++i) x.push_back(0.02 * i);
  const auto expectation = Expect(*graph, {Floats(x)}, 100);
  ASSERT_TRUE(expectation.ok()) << expectation.status();
  const auto agrees = [&](double quotient) {
    Coverage coverage;
    return Agree(*expectation, {Floats(std::vector<double>(64, quotient))}, Subnormal::kKept, &coverage).ok();
  };
  EXPECT_TRUE(agrees(-1));
  EXPECT_TRUE(agrees(-0.99999994));
  EXPECT_FALSE(agrees(-0.9999));
  EXPECT_FALSE(agrees(1));
}

TEST(JudgeTest, ShapesMustBeEqualUnlessRunsHaveOthers) {
  Expectation expectation;
  expectation.outputs = {Floats({1, 2})};
  expectation.perturbed = {{Floats({1, 2})}};
  Coverage coverage;
  EXPECT_FALSE(Agree(expectation, {Floats({1})}, Subnormal::kKept, &coverage).ok());
  EXPECT_FALSE(Agree(expectation, {}, Subnormal::kKept, &coverage).ok());
  expectation.perturbed.push_back({Floats({1})});
  EXPECT_TRUE(Agree(expectation, {Floats({1})}, Subnormal::kKept, &coverage).ok());
  EXPECT_EQ(coverage.uncertain, 2);
  EXPECT_EQ(coverage.compared(), 0);
}

TEST(JudgeTest, ErrorsAreExcusedWhereRoundingDecidesThatTheyMayBe) {
  Expectation expectation;
  expectation.outputs = {Floats({1, 2})};
  Coverage coverage;
  const absl::Status refused = absl::InvalidArgumentError("extents"), crashed = absl::InternalError("crashed");
  EXPECT_EQ(AgreeOnError(expectation, refused, Subnormal::kMayBeZero, &coverage), refused);
  expectation.undecided_if_zero = true;
  EXPECT_EQ(AgreeOnError(expectation, refused, Subnormal::kKept, &coverage), refused);
  EXPECT_EQ(coverage.uncertain, 0);
  EXPECT_TRUE(AgreeOnError(expectation, refused, Subnormal::kMayBeZero, &coverage).ok());
  EXPECT_EQ(coverage.uncertain, 2);
  EXPECT_EQ(AgreeOnError(expectation, crashed, Subnormal::kMayBeZero, &coverage), crashed);
  const absl::Status differs = absl::AbortedError("other bytes"),
                     no_schedule = absl::FailedPreconditionError("layouts");
  EXPECT_TRUE(AgreeOnError(expectation, differs, Subnormal::kMayBeZero, &coverage).ok());
  EXPECT_EQ(AgreeOnError(expectation, no_schedule, Subnormal::kMayBeZero, &coverage), no_schedule);
}

// 5 / 3 * 3 is 5 in some runs only, and the run is refused in the others.
TEST(JudgeTest, ACheckOfTheRunThatRoundingDecidesLeavesNothingToCompare) {
  const auto parsed = ecg::Parse(
      "graph g(%x: f32[1]) {\n  %three: f32[] = const {3.0}\n  %third: f32[1] = Div(%x, %three)\n"
      "  %whole: f32[1] = Mul(%third, %three)\n  %same: bool[1] = Equal(%whole, %x)\n"
      "  %holds: i64[1] = Cast(%same) {to = 7}\n  return %third\n}\n");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ecg::Graph graph = *parsed;
  ecg::AddRunCheck(&graph, graph.nodes().back().outputs[0], "x is not whole");
  const auto expected = Expect(graph, {Floats({5})}, 6);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_TRUE(expected->undecided);
  EXPECT_EQ(Expect(graph, {Floats({6})}, 6)->undecided, false);
}

}  // namespace
}  // namespace fusion::fuzz
