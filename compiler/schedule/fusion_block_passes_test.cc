#include "compiler/schedule/fusion_block_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

using ::testing::HasSubstr;

FusionBlockForm Doubled() {
  absl::StatusOr<te::Program> program = te::Parse(
      "te p(%0: f32[8]) {\n  %1[i0<8]: f32 = %0[i0]\n  %2[i1<8]: f32 = add(%1[i1], %1[i1])\n  return %2\n}\n");
  EXPECT_TRUE(program.ok()) << program.status();
  return {std::move(program).value(), {}, {}};
}

TEST(FusionBlockPasses, RowsStandInTheOrderOfTheirNumbersAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  int number = 0;
  for (const FusionBlockPassRow& row : FusionBlockPasses()) {
    EXPECT_EQ(static_cast<int>(row.pass), number++) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(std::string(row.why), "") << row.name;
    EXPECT_TRUE(row.run != nullptr || !row.can_disable) << row.name;
  }
}

TEST(FusionBlockPasses, APassRuns) {
  const auto formed = RunFusionBlockPass(FusionBlockPass::kFormStages, Doubled(), {}, {});
  ASSERT_TRUE(formed.ok()) << formed.status();
  ASSERT_TRUE(formed->has_value());
  EXPECT_EQ((*formed)->program.tes.size(), 1u);
}

TEST(FusionBlockPasses, APassThatBreaksTheProgramIsNamed) {
  constexpr FusionBlockPassRow kBreaks = {
      FusionBlockPass::kSplitK, "drop-the-first",
      [](const FusionBlockForm& form, const FusionBlockPassContext&) -> absl::StatusOr<std::optional<FusionBlockForm>> {
        FusionBlockForm broken = form;
        broken.program.tes.erase(broken.program.tes.begin());
        return broken;
      },
      true, "for the test"};
  const absl::Status status = RunFusionBlockPass(kBreaks, Doubled(), {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'drop-the-first' made a wrong program"));
  const auto skipped = RunFusionBlockPass(kBreaks, Doubled(), {}, {"drop-the-first"});
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_FALSE(skipped->has_value());
}

TEST(FusionBlockPasses, APassThatCannotBeDisabledIsRefused) {
  const absl::Status status = RunFusionBlockPass(FusionBlockPass::kFormStages, Doubled(), {}, {"form-stages"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'form-stages' cannot be disabled"));
}

TEST(FusionBlockPasses, ABrokenLoweringIsNamed) {
  FusionBlockForm form = Doubled();
  form.program.outputs.push_back(77);
  EXPECT_THAT(std::string(VerifyAfter(FusionBlockPass::kLower, form.program).message()),
              HasSubstr("pass 'lower' made a wrong program"));
}

}  // namespace
}  // namespace fusion
