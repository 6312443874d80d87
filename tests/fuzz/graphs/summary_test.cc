#include "tests/fuzz/graphs/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::fuzz {
namespace {

using testing::HasSubstr;

TEST(SummaryTest, ReasonsOfAKindAreOne) {
  EXPECT_EQ(Reason("Gather 'a': index 1360 is outside a dimension of extent 32"),
            Reason("Gather 'bc': index -4 is outside a dimension of extent 7"));
  EXPECT_EQ(Reason("x [1, 2, 3]"), Reason("x [20]"));
  EXPECT_NE(Reason("Gather: f32"), Reason("Gather: i64"));
  EXPECT_EQ(Reason("its body's 3 inputs"), "its body's # inputs");
}

TEST(SummaryTest, GraphsAreCountedByWhatWasCompared) {
  Summary summary;
  Coverage whole, part, nothing;
  whole.exact = part.special = part.uncertain = nothing.uncertain = 1;
  summary.Passed(whole);
  summary.Passed(part);
  summary.Passed(nothing);
  summary.Refused(absl::InvalidArgumentError("no 1"));
  summary.Refused(absl::InvalidArgumentError("no 2"));
  summary.Failed();
  EXPECT_THAT(summary.Text(),
              HasSubstr("6 graphs: 1 compared, 1 partly compared, 1 not compared, 2 refused, 1 failed\n"));
  EXPECT_THAT(summary.Text(), HasSubstr("refused 2 times: no #\n"));
}

TEST(SummaryTest, ChainsThatAreNoKernelAreCounted) {
  Summary summary;
  summary.OneKernel({{"halos", 1}}, {});
  summary.OneKernel({}, {{"halos: a halo is a result", 1}});
  EXPECT_THAT(summary.Text(), HasSubstr("one kernel 1 times: halos\n  not one kernel 1 times: halos: a halo"));
  EXPECT_EQ(summary.Shortcoming(), "");
  summary.OneKernel({}, {{"halos: no tile", 1}});
  EXPECT_THAT(summary.Shortcoming(), HasSubstr("2 of 3 chains of windows are no kernel"));
}

TEST(SummaryTest, GraphsThatATargetRefusesAreCounted) {
  Coverage whole;
  whole.exact = 1;
  Summary summary;
  summary.Passed(whole);
  EXPECT_THAT(summary.Text(), HasSubstr("0 refused, 0 failed"));
  // Another mode has computed the graph, which is counted once.
  summary.Passed(whole);
  summary.RefusedByTarget({{"dsa: a routine", 1}}, /*judged=*/true);
  EXPECT_THAT(summary.Text(), HasSubstr("2 graphs: 2 compared"));
  EXPECT_THAT(summary.Text(), HasSubstr("refused by target 1 times: dsa: a routine\n"));
  summary.RefusedByTarget({{"dsa: a routine", 1}}, /*judged=*/false);
  EXPECT_THAT(summary.Text(), HasSubstr("3 graphs: 2 compared, 0 partly compared, 0 not compared, 0 refused, "
                                        "1 refused by the target, 0 failed\n"));
  EXPECT_EQ(summary.Shortcoming(), "");
  summary.RefusedByTarget({{"dsa: a routine", 1}}, /*judged=*/false);
  EXPECT_THAT(summary.Shortcoming(), HasSubstr("2 of 4 graphs were refused by the target"));
}

TEST(SummaryTest, ComparingTooLittleIsAShortcoming) {
  Coverage whole, little;
  whole.exact = 100;
  little.exact = 1;
  little.uncertain = 200;
  Summary summary;
  for (int i = 0; i < 10; ++i) summary.Passed(whole);
  EXPECT_EQ(summary.Shortcoming(), "");
  summary.Passed(little);
  EXPECT_EQ(summary.Shortcoming(), "");  // 1001 of 1201
  summary.Passed(little);
  EXPECT_THAT(summary.Shortcoming(), HasSubstr("71.5%"));  // 1002 of 1402
}

TEST(SummaryTest, TooManyRefusalsAreAShortcoming) {
  Coverage whole;
  whole.exact = 1;
  Summary summary;
  for (int i = 0; i < 10; ++i) summary.Passed(whole);
  summary.Refused(absl::InvalidArgumentError("no"));
  EXPECT_EQ(summary.Shortcoming(), "");
  summary.Refused(absl::InvalidArgumentError("no"));
  EXPECT_THAT(summary.Shortcoming(), HasSubstr("2 of 12 graphs"));
}

}  // namespace
}  // namespace fusion::fuzz
