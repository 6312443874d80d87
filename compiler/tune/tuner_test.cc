#include "compiler/tune/tuner.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::tune {
namespace {

using ::testing::SizeIs;

// Kernels whose latency is a formula of two choices. Each kernel has a different best tile.
class MadeUp : public Workbench {
 public:
  absl::StatusOr<Made> Make(int kernel, const Choices& choices) override {
    ChoiceLog log(choices);
    const int tile = log.Pick("tile", 9), order = log.Pick("order", 3);
    const int library = has_library ? log.Pick("library", 2, ChoiceKind::kUnmodelled) : 0;
    if (tile == 8) return absl::FailedPreconditionError("no such schedule");
    ++made;
    Made result{absl::StrCat(kernel, " ", tile, " ", order, " ", library), log.met(), order == 2 ? 1000.0 : 100.0};
    if (kernel == 3) result.points.clear();  // nothing to choose
    return result;
  }
  double Latency(const Variant& v) const {
    const auto gene = [&](const char* name) {
      const auto it = v.choices.find(name);
      return it == v.choices.end() ? 0 : it->second;
    };
    return 100 - 5 * (gene("tile") == 3 + v.kernel) - 3 * (gene("order") == 1) - 90 * (gene("order") == 2);
  }
  absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<Variant>& variants) override {
    std::vector<LatencyAnswer> answers;
    now += seconds_a_variant * static_cast<double>(variants.size());
    for (const Variant& v : variants) {
      answers.push_back({Latency(v) * (lucky && !v.choices.empty() ? 0.9 : 1), source});
      if (!v.choices.empty()) asked.push_back(v);
    }
    return answers;
  }
  absl::StatusOr<std::vector<std::vector<LatencyAnswer>>> Compare(
      const std::vector<std::vector<Variant>>& groups) override {
    std::vector<std::vector<LatencyAnswer>> answers;
    for (const std::vector<Variant>& group : groups) {
      now += seconds_a_variant * static_cast<double>(group.size());
      answers.emplace_back();
      for (const Variant& v : group) answers.back().push_back({Latency(v), LatencySource::kMeasured});
      compared.push_back(group);
    }
    return answers;
  }
  absl::StatusOr<std::vector<KnownTrial>> Trials(int kernel) override { return known[kernel]; }
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(int, int) override { return neighbours; }

  LatencySource source = LatencySource::kMeasured;
  bool has_library = false;
  bool lucky = false;  // trials seem faster than they are
  double now = 0, seconds_a_variant = 0;
  int made = 0;
  std::vector<Variant> asked;
  std::vector<std::vector<Variant>> compared;
  std::map<int, std::vector<KnownTrial>> known;
  std::vector<std::string> neighbours;
};

TuneOptions WithClock(const Budget& budget, MadeUp* bench) {
  TuneOptions options;
  options.budget = budget;
  options.seconds = [bench] { return bench->now; };
  return options;
}

const std::vector<Subject> kTwo = {{1, 100}, {2, 50}};

TEST(Tune, FindsEachKernelsBestSchedule) {
  MadeUp bench;
  const auto tuned = Tune(kTwo, {.budget = {.trials = 40}}, &bench);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_EQ(PrintChoices((*tuned)[0].choices), "order=1 tile=3");
  EXPECT_EQ(PrintChoices((*tuned)[1].choices), "order=1 tile=4");
  EXPECT_NEAR((*tuned)[0].gain, 0.08, 1e-9);
  // Schedules that the cost model estimates far slower are never measured.
  for (const Workbench::Variant& v : bench.asked) EXPECT_NE(PrintChoices(v.choices).substr(0, 7), "order=2");
}

TEST(Tune, WhatNoModelKnowsIsTriedFirst) {
  MadeUp bench;
  bench.has_library = true;
  ASSERT_TRUE(Tune(kTwo, {.budget = {.trials = 1}}, &bench).ok());
  ASSERT_THAT(bench.asked, SizeIs(2));
  for (const Workbench::Variant& v : bench.asked) EXPECT_EQ(PrintChoices(v.choices), "library=1");
}

TEST(Tune, MeasuresNoMoreThanItsTrials) {
  MadeUp bench;
  ASSERT_TRUE(Tune(kTwo, {.budget = {.trials = 6}}, &bench).ok());
  EXPECT_EQ(bench.asked.size(), 12u);
}

TEST(Tune, WhatWasTriedBeforeCounts) {
  MadeUp bench;
  bench.known[0] = {{"tile=1", 100}, {"tile=3", 95},  {"tile=2", 100},
                    {"tile=5", 100}, {"tile=6", 100}, {"order=1", 97}};
  const auto tuned = Tune({{1, 100}}, {.budget = {.trials = 6}}, &bench);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_THAT(bench.asked, SizeIs(0));
  EXPECT_EQ(PrintChoices((*tuned)[0].choices), "tile=3");
}

TEST(Tune, StartsFromNeighbours) {
  MadeUp bench;
  bench.neighbours = {"order=1 tile=3", "no choices"};
  ASSERT_TRUE(Tune({{1, 100}}, {.budget = {.trials = 1}}, &bench).ok());
  ASSERT_THAT(bench.asked, SizeIs(1));
  EXPECT_EQ(PrintChoices(bench.asked[0].choices), "order=1 tile=3");
}

TEST(Tune, ALuckyMeasurementDoesNotWin) {
  MadeUp bench;
  bench.lucky = true;
  bench.neighbours = {"tile=1", "tile=2"};
  const auto tuned = Tune({{1, 100}}, {.budget = {.trials = 2}}, &bench);
  ASSERT_TRUE(tuned.ok());
  EXPECT_THAT(bench.compared, SizeIs(1));
  EXPECT_EQ(PrintChoices((*tuned)[0].choices), "");
}

// Otherwise a later compilation, which knows each kernel once, would ask for another final.
TEST(Tune, AKernelIsInTheFinalOnce) {
  MadeUp bench;
  bench.known[0] = {{"tile=3", 95}, {"tile=3 unroll=1", 95}, {"order=1", 96}};
  ASSERT_TRUE(Tune({{1, 100}}, {.budget = {.trials = 3}}, &bench).ok());
  ASSERT_THAT(bench.compared, SizeIs(1));
  ASSERT_THAT(bench.compared[0], SizeIs(3));
  EXPECT_EQ(PrintChoices(bench.compared[0][1].choices), "tile=3");
  EXPECT_EQ(PrintChoices(bench.compared[0][2].choices), "order=1");
}

TEST(Tune, WithoutMeasurementsNothingIsTried) {
  MadeUp bench;
  bench.source = LatencySource::kModel;
  const auto tuned = Tune(kTwo, {.budget = {.trials = 40}}, &bench);
  ASSERT_TRUE(tuned.ok());
  EXPECT_THAT(bench.asked, SizeIs(0));
  EXPECT_EQ(PrintChoices((*tuned)[0].choices), "");
}

TEST(Tune, SmallSharesAndKernelsWithoutChoicesAreLeftAlone) {
  MadeUp bench;
  ASSERT_TRUE(Tune({{1, 98}, {2, 1}, {3, 1}, {4, 50}}, {.budget = {.trials = 2, .share = 0.02}}, &bench).ok());
  for (const Workbench::Variant& v : bench.asked) EXPECT_EQ(v.kernel, 0);
  EXPECT_THAT(bench.asked, SizeIs(2));
}

TEST(Tune, EndsWithItsTimeAndWhenCancelled) {
  MadeUp bench;
  double now = 0;
  TuneOptions options{.budget = {.trials = 100, .seconds = 8}, .seconds = [&] { return now += 1; }};
  ASSERT_TRUE(Tune({{1, 100}}, options, &bench).ok());
  EXPECT_LE(bench.asked.size(), 8u);
  options.cancelled = [] { return true; };
  EXPECT_EQ(Tune({{1, 100}}, options, &bench).status().code(), absl::StatusCode::kCancelled);
}

TEST(Tune, WhereATrialIsDearTimeGoesToWhatMatters) {
  MadeUp bench;
  bench.seconds_a_variant = 5;
  const TuneOptions options = WithClock({.trials = 8, .seconds = 60}, &bench);
  ASSERT_TRUE(Tune({{1, 50}, {2, 100}}, options, &bench).ok());
  int of_first = 0;
  for (const Workbench::Variant& v : bench.asked) of_first += v.kernel == 0;
  EXPECT_EQ(of_first, 0);
  EXPECT_GE(bench.asked.size(), 4u);
  EXPECT_LE(bench.now, 60);
}

// There are so many kernels that measuring each one as it is would already exceed the time.
TEST(Tune, KeepsItsTimeHoweverManyKernelsThereAre) {
  for (const double seconds : {0.1, 1.0, 3.0, 7.0}) {
    MadeUp bench;
    bench.seconds_a_variant = seconds;
    bench.neighbours = {"order=1 tile=3"};  // the best choices of the first kernel
    std::vector<Subject> subjects;
    for (uint64_t k = 0; k < 40; ++k) subjects.push_back({k, 1.0 + static_cast<double>(k == 0)});
    const TuneOptions options = WithClock({.trials = 8, .seconds = 60}, &bench);
    const auto tuned = Tune(subjects, options, &bench);
    ASSERT_TRUE(tuned.ok()) << tuned.status();
    EXPECT_LE(bench.now, 60) << seconds;
    EXPECT_GT(bench.now, 30) << seconds;
    EXPECT_EQ(PrintChoices((*tuned)[0].choices), "order=1 tile=3") << "trials that nothing comes of, at " << seconds;
  }
}

TEST(Tune, WhatTheDatabaseKnowsTakesNoTime) {
  MadeUp bench;
  bench.source = LatencySource::kDatabase;
  std::vector<Subject> subjects(40, Subject{1, 1});
  const TuneOptions options = WithClock({.trials = 2, .seconds = 60}, &bench);
  ASSERT_TRUE(Tune(subjects, options, &bench).ok());
  EXPECT_EQ(bench.asked.size(), 78u) << "two of each kernel that has choices";
}

}  // namespace
}  // namespace fusion::tune
