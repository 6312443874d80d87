#include "compiler/schedule/choices.h"

#include "gtest/gtest.h"

namespace fusion {
namespace {

TEST(Choices, PrintAndParse) {
  const Choices choices = {{"tile", 3}, {"stream", 1}, {"reduction", 0}};
  EXPECT_EQ(PrintChoices(choices), "stream=1 tile=3");
  EXPECT_EQ(PrintChoices(*ParseChoices(" tile=3  stream=1 ")), "stream=1 tile=3");
  EXPECT_EQ(PrintChoices(*ParseChoices("")), "");
}

TEST(Choices, RefusesOtherText) {
  for (const char* text : {"tile", "=1", "tile=", "tile=x", "tile=-1", "tile=1=2"}) {
    const absl::Status status = ParseChoices(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(status.message().find(text), std::string::npos) << status;
  }
}

TEST(ChoiceLog, AnswersAndRemembers) {
  ChoiceLog log({{"tile", 3}, {"tile.1", 1}, {"reduction", 7}});
  EXPECT_EQ(log.Pick("tile", 5), 3);
  EXPECT_EQ(log.Pick("one", 1), 0);   // no choice
  EXPECT_EQ(log.Pick("reduction", 3), 0);  // there is no eighth
  EXPECT_EQ(log.Pick("tile", 2), 1);
  ASSERT_EQ(log.met().size(), 3u);
  EXPECT_EQ(log.met()[0].name, "tile");
  EXPECT_EQ(log.met()[0].taken, 3);
  EXPECT_EQ(log.met()[1].name, "reduction");
  EXPECT_EQ(log.met()[1].count, 3);
  EXPECT_EQ(log.met()[2].name, "tile.1");
}

TEST(ChoiceLog, ADirectiveDecidesAtItsStage) {
  ChoiceLog log({{"tile", 2}}, {{1, "tile", "6x4"}});
  log.Enter({0});
  EXPECT_EQ(log.Pick("tile", {"8x3", "6x4", "4x4"}), 2);
  EXPECT_FALSE(log.CheckStageDirectives().ok());
  log.Enter({1, 2});
  EXPECT_EQ(log.Pick("tile", {"8x3", "6x4"}), 1);
  EXPECT_TRUE(log.CheckStageDirectives().ok());
  ASSERT_EQ(log.met().size(), 1u);  // a search has no say in the other
  EXPECT_EQ(log.met()[0].name, "tile");
  EXPECT_EQ(log.met()[0].origins, (std::vector<int>{0}));
  log.Pick("tile", {"6x4"});
  EXPECT_NE(log.CheckStageDirectives().message().find("comes up 2 times"), std::string::npos);
}

// A choice of one alternative is no choice, but the alternative may be what is wanted.
TEST(ChoiceLog, TheOnlyAlternativeMayBeTheWantedOne) {
  ChoiceLog log({}, {{-1, "unroll", "4"}});
  EXPECT_EQ(log.Pick("unroll", {"4"}), 0);
  EXPECT_TRUE(log.CheckStageDirectives().ok());
}

TEST(ChoiceLog, UnmetDirectivesSayWhatThereIs) {
  ChoiceLog lacking({}, {{3, "tile", "7x7", "MatMul %y"}}), absent({}, {{-1, "tiles", "6x4"}}), form({}, {{-1, "form", "plain"}});
  lacking.Enter({3});
  lacking.Pick("tile", {"8x3", "6x4"});
  EXPECT_EQ(lacking.CheckStageDirectives().message(),
            "the plan wants 'tile' of MatMul %y to be '7x7', and the alternatives are 8x3, 6x4");
  absent.Pick("tile", {"8x3", "6x4"});
  EXPECT_EQ(absent.CheckStageDirectives().message(),
            "the plan wants 'tiles' to be '6x4', and the schedule has no such choice there");
  EXPECT_TRUE(form.CheckStageDirectives().ok());
  EXPECT_FALSE(form.CheckKernelDirectives().ok());
}

}  // namespace
}  // namespace fusion
