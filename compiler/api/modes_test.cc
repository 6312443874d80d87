#include "compiler/api/modes.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace fusion {
namespace {

TEST(Modes, EachWordIsALevelOfItsOwn) {
  std::set<rewrite::MathLevel> levels;
  for (const std::string& word : MathModes()) levels.insert(MathLevelOf(word).value());
  EXPECT_EQ(levels.size(), MathModes().size());
  EXPECT_EQ(MathLevelOf("strict").value(), rewrite::MathLevel::kStrict);
  EXPECT_EQ(MathLevelOf("fast").value(), rewrite::MathLevel::kFast);
  EXPECT_EQ(MathLevelOf("relaxed").value(), rewrite::MathLevel::kRelaxed);
  for (const std::string& word : Precisions()) EXPECT_TRUE(CheckPrecision(word).ok()) << word;
  for (const std::string& word : SizeModes()) EXPECT_TRUE(CheckSize(word).ok()) << word;
}

TEST(Modes, AnErrorNamesTheWordAndTheValidOnes) {
  for (const std::string word : {"", "Fast", "fast ", "fp32"}) {
    const absl::Status status = MathLevelOf(word).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << word;
    EXPECT_NE(status.message().find("'" + word + "'"), std::string::npos) << status;
    for (const std::string& valid : MathModes()) EXPECT_NE(status.message().find(valid), std::string::npos) << status;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPrecision("fp64")));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckSize("large")));
}

TEST(Modes, AnEndlessWordIsCutInTheError) { EXPECT_LT(CheckSize(std::string(1 << 20, 'x')).message().size(), 256u); }

}  // namespace
}  // namespace fusion
