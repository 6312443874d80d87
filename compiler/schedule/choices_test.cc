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

}  // namespace
}  // namespace fusion
