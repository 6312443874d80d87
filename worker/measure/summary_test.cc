#include "worker/measure/summary.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;

TEST(Summarize, OrdersAndKeepsTheOrderTaken) {
  MeasureSummary summary = Summarize({{30, 100}, {10, 100}, {20, 100}});
  EXPECT_THAT(summary.samples_ns, ElementsAre(30, 10, 20));
  EXPECT_EQ(summary.min_ns, 10);
  EXPECT_EQ(summary.median_ns, 20);
  EXPECT_EQ(summary.p90_ns, 30);
  EXPECT_EQ(summary.peak_ratio, 1);
}

TEST(Summarize, SetsDisturbedSamplesAside) {
  MeasureSummary summary = Summarize({{10, 100}, {99, 50}, {11, 98}});
  EXPECT_THAT(summary.samples_ns, ElementsAre(10, 11));
}

TEST(Summarize, KeepsAllWhenMostAreDisturbed) {
  MeasureSummary summary = Summarize({{10, 100}, {20, 50}, {21, 50}, {22, 50}});
  EXPECT_EQ(summary.samples_ns.size(), 4);
  EXPECT_EQ(summary.peak_ratio, 0.5);
}

TEST(Settled, NeedsSamplesAndAgreement) {
  EXPECT_FALSE(Settled({{100, 1}, {100, 1}}, 3));
  EXPECT_TRUE(Settled({{100, 1}, {100, 1}, {100.5, 1}}, 3));
  EXPECT_FALSE(Settled({{100, 1}, {120, 1}, {140, 1}}, 3));
}

TEST(SummaryJson, OutputsThatAreNotFiniteStayInTheirPlaces) {
  MeasureSummary summary = Summarize({{10, 100}});
  summary.outputs = {1.5, std::nan(""), -3};
  const auto back = SummariesFromJson(SummariesToJson({summary, Summarize({{10, 100}})}));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->at(0).outputs.size(), 3u);
  EXPECT_TRUE(std::isnan(back->at(0).outputs[1]));
  EXPECT_EQ(back->at(0).outputs[2], -3);
  EXPECT_TRUE(back->at(1).outputs.empty());
}

TEST(SummaryJson, RoundTripsAndRefusesOtherText) {
  MeasureSummary summary = Summarize({{10, 100}, {20, 90}});
  auto back = SummariesFromJson(SummariesToJson({summary, Summarize({{5, 1}})}));
  ASSERT_TRUE(back.ok()) << back.status();
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ((*back)[0].samples_ns, summary.samples_ns);
  EXPECT_EQ((*back)[0].p90_ns, summary.p90_ns);
  EXPECT_EQ((*back)[1].median_ns, 5);
  for (const char* text : {"", "{}", "[", "[3]", "[{}]", "[{\"samples_ns\": [\"x\"]}]", "[{\"samples_ns\": []}]"}) {
    EXPECT_FALSE(SummariesFromJson(text).ok()) << text;
  }
}

}  // namespace
}  // namespace fusion
