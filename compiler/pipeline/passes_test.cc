#include "compiler/pipeline/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/schedule/fusion_block_passes.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

TEST(Passes, EachRowHasANameOfItsOwnAndAReason) {
  std::set<std::string> names;
  for (const Pass& pass : Passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_NE(std::string(pass.stage), "") << pass.name;
    EXPECT_NE(std::string(pass.why), "") << pass.name;
    const bool over_bundle = pass.part == PassPart::kBundle;
    const bool runs_here = pass.part != PassPart::kWithin && pass.part != PassPart::kBlock && !over_bundle;
    EXPECT_TRUE(!runs_here || pass.run != nullptr) << pass.name;
    EXPECT_EQ(pass.run_bundle != nullptr, over_bundle) << pass.name;
  }
  for (const FusionBlockPassRow& row : FusionBlockPasses()) EXPECT_TRUE(names.count(row.name)) << row.name;
}

// The runner takes the parts one after another; a row out of order would run later than the table says.
TEST(Passes, ThePartsStandInTheOrderInWhichTheyRun) {
  PassPart last = PassPart::kGraph;
  for (const Pass& pass : Passes()) {
    if (pass.part == PassPart::kWithin || pass.part == PassPart::kBlock) continue;
    EXPECT_GE(pass.part, last) << pass.name;
    last = pass.part;
  }
}

TEST(Passes, OnlyPassesThatCanBeDisabledAreAccepted) {
  for (const std::string& name : PassesToDisable()) EXPECT_TRUE(CheckDisabled({name}).ok()) << name;
  const absl::Status needed = CheckDisabled({"rewrite", "simplify"});
  EXPECT_EQ(needed.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(needed.message()),
              HasSubstr("pass 'simplify' cannot be disabled: use one of loops, rewrite, "));
  EXPECT_THAT(std::string(CheckDisabled({"polish"}).message()), HasSubstr("no pass 'polish' to leave out: use one of"));
}

TEST(Passes, TheListForPeopleNamesEachRow) {
  const std::string text = PrintPasses();
  for (const Pass& pass : Passes()) EXPECT_THAT(text, HasSubstr(std::string(pass.name) + " "));
}

}  // namespace
}  // namespace fusion
