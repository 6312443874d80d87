#include "server/scheduler/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace fusion {
namespace {

using ::testing::HasSubstr;
using Say = Verdict::Say;

class JudgeTest : public ::testing::Test {
 protected:
  // A batch of one kernel that takes `ns` by the source's clock, which runs `pace` times as fast as it should.
  static Opinion Batch(const std::string& source, double ns, double pace = 1, double output = 3) {
    static int number = 0;
    Opinion opinion;
    opinion.source = source, opinion.worker = "worker of " + source, opinion.result = "result of " + source;
    MeasurementRow& row = opinion.accepted.rows.measurements.emplace_back();
    row.description = "Conv", row.min_ns = row.median_ns = ns * pace, row.model_ns = ns;
    Testimony& said = opinion.accepted.testimony;
    said.canaries = {{output, std::numeric_limits<double>::quiet_NaN()}};
    said.samples = "samples " + std::to_string(number++);
    said.candidate = "the first kernel";
    return opinion;
  }
  // The same with a sentinel of 20 µs.
  static Opinion Checked(const std::string& source, double ns, double pace = 1, double output = 3) {
    Opinion opinion = Batch(source, ns, pace, output);
    opinion.accepted.testimony.candidate.clear();
    opinion.accepted.testimony.sentinel_ns = 20e3 * pace;
    opinion.accepted.testimony.sentinel_canary = {output * 2};
    return opinion;
  }
  // `a` and `b` agree `times` times, so that a sentinel is known.
  void Establish(int times = Judge::kConfirmedFirst) {
    for (int i = 0; i < times; ++i) {
      const std::string task = "first " + std::to_string(i);
      const bool has_sentinel = !judge_.SentinelOf("kind").empty();
      ASSERT_EQ(Hear(task, has_sentinel ? Checked("a", 30e3) : WithSentinelsNumbers("a")).say, Say::kAgain);
      ASSERT_EQ(Hear(task, has_sentinel ? Checked("b", 31e3) : WithSentinelsNumbers("b")).say, Say::kTake);
    }
  }
  static Opinion WithSentinelsNumbers(const std::string& source) {
    Opinion opinion = Batch(source, 20e3);
    opinion.accepted.testimony.canaries = {{6}};
    return opinion;
  }
  Verdict Hear(const std::string& task, Opinion opinion, bool another = true) {
    return judge_.Hear(task, "kind", std::move(opinion), another);
  }
  static Standing StandingOf(const Verdict& verdict) {
    return verdict.taken.at(0).accepted.rows.measurements.at(0).standing;
  }

  bool drawn_ = false;
  Judge judge_{[this] { return drawn_; }};
};

TEST_F(JudgeTest, OneThatIsAloneCountsAsASingleSource) {
  const Verdict verdict = Hear("t", Batch("a", 30e3), false);
  ASSERT_EQ(verdict.say, Say::kTake);
  EXPECT_EQ(StandingOf(verdict), Standing::kSingleSource);
  EXPECT_EQ(verdict.taken[0].accepted.rows.measurements[0].source, "a");
  EXPECT_EQ(judge_.SentinelOf("kind"), "the first kernel");
  // It is compared with itself, and may have changed for good.
  EXPECT_EQ(Hear("t1", Checked("a", 30e3), false).say, Say::kTake);
  EXPECT_EQ(Hear("t2", Checked("a", 30e3, 2), false).say, Say::kRetry);
  Say last = Say::kRetry;
  for (int i = 0; i < 20; ++i) last = Hear("t3", Checked("a", 30e3, 2), false).say;
  EXPECT_EQ(last, Say::kTake);
  EXPECT_TRUE(judge_.TakeQuarantines().empty());
}

// As after a restart of the server.
TEST_F(JudgeTest, AnotherJudgeKnowsTheSourcesAndWhatAwaitsASecondOpinion) {
  Establish();
  EXPECT_EQ(Hear("wrong", Checked("a", 30e3, 2)).say, Say::kRefuse);
  drawn_ = true;
  EXPECT_EQ(Hear("open", Checked("b", 30e3)).say, Say::kAgain);
  drawn_ = false;
  std::map<std::string, SourceRow> rows;
  for (const SourceRow& row : judge_.TakeChanged()) rows[row.source] = row;
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows["a"].strikes, 1);
  EXPECT_EQ(rows["a"].in_a_row, 0);
  EXPECT_EQ(rows["a"].caught, 1);
  EXPECT_EQ(rows["b"].in_a_row, Judge::kConfirmedFirst);
  EXPECT_EQ(rows["b"].awaiting, std::vector<std::string>{"open"});
  EXPECT_TRUE(judge_.TakeChanged().empty());

  Judge later([] { return false; });
  for (const auto& [name, row] : rows) later.Restore(row);
  EXPECT_EQ(later.InWords("a"), judge_.InWords("a"));
  EXPECT_EQ(later.InWords("b"), judge_.InWords("b"));
  EXPECT_EQ(later.Waiting(), std::vector<std::string>{"open"});
  EXPECT_FALSE(later.HasHeard("open"));
  // Both agree once, so that there is a sentinel; then one opinion of b suffices, but not on the task that was open.
  EXPECT_EQ(later.Hear("t", "kind", WithSentinelsNumbers("b"), true).say, Say::kAgain);
  EXPECT_EQ(later.Hear("t", "kind", WithSentinelsNumbers("a"), true).say, Say::kTake);
  EXPECT_EQ(later.Hear("u", "kind", Checked("b", 30e3), true).say, Say::kTake);
  EXPECT_EQ(later.Hear("v", "kind", Checked("a", 30e3), true).say, Say::kAgain) << "it was caught, and confirmed once";
  EXPECT_EQ(later.Hear("open", "kind", Checked("b", 30e3), true).say, Say::kAgain);
  EXPECT_EQ(later.Hear("open", "kind", Checked("a", 30e3), true).say, Say::kTake);
  EXPECT_EQ(later.Hear("open", "kind", Checked("b", 30e3), true).say, Say::kTake) << "it was decided";
  rows.clear();
  for (const SourceRow& row : later.TakeChanged()) rows[row.source] = row;
  EXPECT_EQ(rows["a"].awaiting, std::vector<std::string>{"v"});
  EXPECT_EQ(rows["b"].awaiting, std::vector<std::string>{});
}

TEST_F(JudgeTest, TwoThatAgreeCountAndTheThirdIsCaught) {
  EXPECT_EQ(Hear("t", Batch("half", 30e3, 0.5)).say, Say::kAgain);
  EXPECT_EQ(Hear("t", Batch("a", 30e3)).say, Say::kAgain);
  const Verdict verdict = Hear("t", Batch("b", 33e3));
  ASSERT_EQ(verdict.say, Say::kTake);
  ASSERT_EQ(verdict.taken.size(), 2u);
  EXPECT_EQ(verdict.taken[1].source, "b") << "the latest is last";
  for (const Opinion& opinion : verdict.taken) {
    EXPECT_EQ(opinion.accepted.rows.measurements[0].standing, Standing::kConfirmed);
  }
  EXPECT_THAT(judge_.InWords("half"), HasSubstr("1 caught, at last: 'Conv' took 15 µs and 33 µs"));
  EXPECT_EQ(judge_.InWords("c"), "new");
  EXPECT_TRUE(judge_.Waiting().empty());
}

TEST_F(JudgeTest, WrongNumbersDiffer) {
  EXPECT_EQ(Hear("t", Batch("wrong", 30e3, 1, 4)).say, Say::kAgain);
  EXPECT_EQ(Hear("t", Batch("a", 30e3)).say, Say::kAgain);
  EXPECT_EQ(Hear("t", Batch("b", 30e3)).taken.size(), 2u);
  EXPECT_THAT(judge_.InWords("wrong"), HasSubstr("computed other numbers"));
  // NaN where the others have a number is another number, too; rounding is not.
  Opinion nan = Batch("nan", 30e3);
  nan.accepted.testimony.canaries[0][0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Hear("u", std::move(nan)).say, Say::kAgain);
  EXPECT_EQ(Hear("u", Batch("a", 30e3)).say, Say::kAgain);
  EXPECT_EQ(Hear("u", Batch("b", 30e3, 1, 3.001)).taken.size(), 2u);
}

TEST_F(JudgeTest, ThreeBatchesWithAWrongSentinelAreAQuarantine) {
  Establish();
  for (int i = 0; i < Judge::kStrikes; ++i) {
    EXPECT_TRUE(judge_.TakeQuarantines().empty());
    EXPECT_EQ(Hear("t" + std::to_string(i), Checked("twice", 30e3, 2)).say, Say::kRefuse);
  }
  const std::vector<DueQuarantine> due = judge_.TakeQuarantines();
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].source, "twice");
  EXPECT_EQ(due[0].cause, "sentinel");
  EXPECT_THAT(due[0].reason, HasSubstr("its sentinel took 40 µs instead of 20 µs"));
  EXPECT_EQ(Hear("u", Checked("wrong", 30e3, 1, 5)).why, "its sentinel computed other numbers");
}

TEST_F(JudgeTest, AKnownSourceIsCheckedByLotAndWhereItIsRemarkable) {
  Establish();
  Verdict verdict = Hear("t", Checked("a", 30e3));
  ASSERT_EQ(verdict.say, Say::kTake);
  EXPECT_EQ(StandingOf(verdict), Standing::kChecked);
  EXPECT_EQ(Hear("new", Checked("c", 30e3)).say, Say::kAgain) << "a new one";
  Opinion best = Checked("a", 30e3);
  best.remarkable = true;
  EXPECT_EQ(Hear("best", std::move(best)).say, Say::kAgain);
  drawn_ = true;
  EXPECT_EQ(Hear("drawn", Checked("a", 30e3)).say, Say::kAgain);
  drawn_ = false;
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Hear("t", Checked("a", 30e3 * (1 + 0.01 * i))).say, Say::kTake);
  Opinion outlier = Checked("a", 30e3);
  outlier.accepted.rows.measurements[0].median_ns = 300e3;
  EXPECT_EQ(Hear("outlier", std::move(outlier)).say, Say::kAgain);
  // Caught once, it is new again.
  EXPECT_EQ(Hear("caught", Checked("a", 30e3, 2)).say, Say::kRefuse);
  EXPECT_EQ(Hear("t", Checked("a", 30e3)).say, Say::kAgain);
}

TEST_F(JudgeTest, OneThatKnowsNoSentinelAlwaysNeedsOthersAndConfirmsNobody) {
  Establish();
  const auto old = [] {
    Opinion opinion = Batch("old", 30e3);
    opinion.accepted.testimony.canaries = {{}};
    opinion.accepted.testimony.candidate.clear();
    return opinion;
  };
  for (int i = 0; i < 10; ++i) {
    const std::string task = "t" + std::to_string(i);
    ASSERT_EQ(Hear(task, old()).say, Say::kAgain);
    ASSERT_EQ(Hear(task, Checked("a", 30e3)).say, Say::kAgain) << "nobody looked at what its kernel computes";
    const Verdict verdict = Hear(task, Checked("b", 30e3));
    ASSERT_EQ(verdict.say, Say::kTake);
    EXPECT_EQ(verdict.taken.size(), 3u);
  }
  EXPECT_EQ(Hear("wrong", Batch("wrong", 30e3, 1, 4)).say, Say::kAgain);
  EXPECT_EQ(Hear("wrong", old()).say, Say::kAgain);
  EXPECT_EQ(Hear("wrong", Checked("a", 30e3)).say, Say::kAgain);
  EXPECT_EQ(Hear("wrong", Checked("b", 30e3)).taken.size(), 3u);
  EXPECT_THAT(judge_.InWords("wrong"), HasSubstr("1 caught"));
  // Where nobody else is left, times that agree count, and prove nothing.
  EXPECT_EQ(Hear("u", old()).say, Say::kAgain);
  EXPECT_EQ(Hear("u", Batch("c", 30e3), /*another=*/false).taken.size(), 2u);
  EXPECT_EQ(Hear("v", old()).say, Say::kAgain);
  EXPECT_EQ(Hear("v", Batch("c", 30e3)).say, Say::kAgain);
  EXPECT_EQ(judge_.Settle("v").taken.size(), 2u);
  EXPECT_THAT(judge_.InWords("c"), HasSubstr("0 confirmed"));
}

TEST_F(JudgeTest, SamplesThatWereSentBeforeAreRefused) {
  Opinion first = Batch("a", 30e3);
  const std::string samples = first.accepted.testimony.samples;
  EXPECT_EQ(Hear("t", std::move(first)).say, Say::kAgain);
  Opinion again = Batch("a", 30e3), other = Batch("b", 30e3);
  again.accepted.testimony.samples = other.accepted.testimony.samples = samples;
  EXPECT_EQ(Hear("u", std::move(again)).why, "it sent samples again that it had sent before");
  EXPECT_EQ(Hear("v", std::move(other)).say, Say::kAgain) << "of another source";
}

TEST_F(JudgeTest, AWorkerThatIsBelievedDecidesAlone) {
  EXPECT_EQ(Hear("t", Batch("half", 30e3, 0.5)).say, Say::kAgain);
  EXPECT_EQ(Hear("t", Batch("a", 30e3)).say, Say::kAgain);
  const Verdict verdict = Hear("t", Batch("", 30e3));
  ASSERT_EQ(verdict.say, Say::kTake);
  ASSERT_EQ(verdict.taken.size(), 2u);
  EXPECT_EQ(StandingOf(verdict), Standing::kConfirmed);
  EXPECT_EQ(verdict.taken[1].accepted.rows.measurements[0].standing, Standing::kBelieved);
  EXPECT_THAT(judge_.InWords("half"), HasSubstr("by a worker that is believed"));
  EXPECT_EQ(judge_.InWords(""), "believed");
}

// Two that lie in the same way agree, until a worker that is believed says what the sentinel takes.
TEST_F(JudgeTest, WhatABelievedWorkerSaysOfTheSentinelReplacesWhatOthersAgreedOn) {
  for (const char* source : {"half", "half too"}) Hear("t", Batch(source, 40e3, 0.5));
  EXPECT_EQ(Hear("u", Checked("", 30e3, 2)).say, Say::kTake);
  EXPECT_EQ(Hear("v", Checked("half", 30e3, 1)).say, Say::kRefuse) << "20 µs, which the two said";
  EXPECT_EQ(Hear("v", Checked("honest", 30e3, 2)).say, Say::kAgain);
}

TEST_F(JudgeTest, WhereNobodyIsLeftOneOpinionCountsAndSeveralDoNot) {
  EXPECT_EQ(Hear("t", Batch("a", 30e3)).say, Say::kAgain);
  EXPECT_THAT(judge_.Waiting(), testing::ElementsAre("t"));
  const Verdict verdict = judge_.Settle("t");
  ASSERT_EQ(verdict.say, Say::kTake);
  EXPECT_EQ(StandingOf(verdict), Standing::kSingleSource);
  EXPECT_TRUE(judge_.Waiting().empty());

  EXPECT_EQ(Hear("u", Batch("a", 30e3)).say, Say::kAgain);
  EXPECT_EQ(Hear("u", Batch("half", 30e3, 0.5)).say, Say::kAgain);
  EXPECT_EQ(judge_.Settle("u").say, Say::kNone);
  EXPECT_EQ(Hear("v", Batch("a", 30e3)).say, Say::kAgain);
  EXPECT_EQ(Hear("v", Batch("half", 30e3, 0.5), false).say, Say::kNone);
  EXPECT_TRUE(judge_.TakeQuarantines().empty()) << "nobody knows which of the two lies";

  // A task whose opinions were only refused waits as well.
  Establish();
  EXPECT_EQ(Hear("w", Checked("twice", 30e3, 2)).say, Say::kRefuse);
  EXPECT_THAT(judge_.Waiting(), testing::ElementsAre("w"));
  EXPECT_EQ(judge_.Settle("w").say, Say::kNone);
}

TEST_F(JudgeTest, AnExpelledSourceIsForgottenAndAPardonedOneIsNew) {
  Establish();
  EXPECT_EQ(Hear("t", Batch("half", 30e3, 0.5)).say, Say::kAgain);
  judge_.Expel("half");
  EXPECT_EQ(judge_.Settle("t").say, Say::kNone);
  EXPECT_EQ(judge_.InWords("half"), "new");
  // Whatever its machine was before, others decide anew.
  EXPECT_EQ(Hear("u", Checked("half", 30e3, 0.5)).say, Say::kRefuse);
  judge_.Pardon("half");
  EXPECT_EQ(Hear("u", Checked("half", 30e3, 0.5)).say, Say::kAgain);
}

TEST_F(JudgeTest, PlansAreComparedMoreExactly) {
  const auto compared = [](const std::string& source, double ratio) {
    Opinion opinion;
    opinion.source = source;
    opinion.accepted.rows.comparisons.emplace_back().ratio = ratio;
    return opinion;
  };
  EXPECT_EQ(Hear("t", compared("a", 1.2)).say, Say::kAgain);
  EXPECT_EQ(Hear("t", compared("liar", 0.9)).say, Say::kAgain);
  const Verdict verdict = Hear("t", compared("b", 1.17));
  ASSERT_EQ(verdict.taken.size(), 2u);
  EXPECT_EQ(verdict.taken[0].accepted.rows.comparisons[0].standing, Standing::kConfirmed);
  EXPECT_EQ(verdict.taken[0].source, "a");
}

}  // namespace
}  // namespace fusion
