#include "compiler/cost/known_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/status/status.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A database of some keys, which refuses to measure.
class Database : public LatencyOracle {
 public:
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    std::vector<LatencyAnswer> answers;
    for (const LatencyQuestion& question : questions) {
      if (keys.count(question.key) == 0) return absl::InternalError("asked to measure " + question.key);
      asked.push_back(question.key);
      answers.push_back({7, LatencySource::kDatabase});
    }
    return answers;
  }
  absl::StatusOr<bool> Knows(const std::string& key) override { return keys.count(key) != 0; }
  absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& workload) override {
    return std::vector<KnownTrial>{{"tile=1", static_cast<double>(workload.size())}};
  }
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string&, const std::string&, int) override {
    return std::vector<std::string>{"tile=2"};
  }
  std::set<std::string> keys;
  std::vector<std::string> asked;
};

class NoBundles : public MeasurementBundler {
 public:
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string>) override {
    return absl::InternalError("nothing is to be measured");
  }
};

LatencyQuestion Question(const std::string& key, const std::string& group = "") {
  LatencyQuestion question{key, key, 100};
  question.group = group;
  return question;
}

class KnownAnswersTest : public ::testing::Test {
 protected:
  // 'd' for an answer of the database, 'm' for the model's estimate.
  std::string Sources(const std::vector<LatencyQuestion>& questions) {
    const auto answers = known_.Latency(questions, bundles_);
    EXPECT_TRUE(answers.ok()) << answers.status();
    std::string sources;
    if (!answers.ok()) return sources;
    for (const LatencyAnswer& answer : *answers) {
      const bool database = answer.source == LatencySource::kDatabase;
      EXPECT_EQ(answer.latency_ns, database ? 7 : 100);
      sources += database ? 'd' : 'm';
    }
    return sources;
  }
  Database database_;
  KnownAnswers known_{&database_};
  NoBundles bundles_;
};

TEST_F(KnownAnswersTest, WhatTheDatabaseLacksIsEstimatedAndNotMeasured) {
  database_.keys = {"a", "c"};
  EXPECT_EQ(Sources({Question("a"), Question("b"), Question("c")}), "dmd");
  EXPECT_THAT(database_.asked, ElementsAre("a", "c"));
  EXPECT_EQ(Sources({Question("x")}), "m");
  EXPECT_EQ(Sources({}), "");
}

TEST_F(KnownAnswersTest, AGroupIsAnsweredAsAWhole) {
  database_.keys = {"a", "b", "c"};
  EXPECT_EQ(Sources({Question("a", "one"), Question("b", "two"), Question("x", "two"), Question("c", "one")}), "dmmd");
}

TEST_F(KnownAnswersTest, TrialsAreThoseOfTheDatabaseAndNothingElseIsTried) {
  const auto trials = known_.Trials("four");
  ASSERT_TRUE(trials.ok());
  ASSERT_EQ(trials->size(), 1u);
  EXPECT_EQ((*trials)[0].latency_ns, 4);
  EXPECT_THAT(*known_.NeighbourChoices("structure", "workload", 3), IsEmpty());
}

}  // namespace
}  // namespace fusion
