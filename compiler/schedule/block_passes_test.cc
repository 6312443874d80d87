#include "compiler/schedule/block_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

using ::testing::HasSubstr;

BlockForm Doubled() {
  absl::StatusOr<te::Program> program = te::Parse(
      "te p(%0: f32[8]) {\n  %1[i0<8]: f32 = %0[i0]\n  %2[i1<8]: f32 = add(%1[i1], %1[i1])\n  return %2\n}\n");
  EXPECT_TRUE(program.ok()) << program.status();
  return {*std::move(program), {}, {}};
}

TEST(BlockPasses, RowsStandInTheOrderOfTheirNumbersAndHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  int number = 0;
  for (const BlockPassRow& row : BlockPasses()) {
    EXPECT_EQ(static_cast<int>(row.pass), number++) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(std::string(row.why), "") << row.name;
    EXPECT_TRUE(row.run != nullptr || !row.can_disable) << row.name;
  }
}

TEST(BlockPasses, APassRuns) {
  const auto formed = RunBlockPass(BlockPass::kFormStages, Doubled(), {}, {});
  ASSERT_TRUE(formed.ok()) << formed.status();
  ASSERT_TRUE(formed->has_value());
  EXPECT_EQ((*formed)->program.tes.size(), 1u);
}

TEST(BlockPasses, APassThatBreaksTheProgramIsNamed) {
  constexpr BlockPassRow kBreaks = {
      BlockPass::kSplitK, "drop-the-first",
      [](const BlockForm& form, const BlockPassContext&) -> absl::StatusOr<std::optional<BlockForm>> {
        BlockForm broken = form;
        broken.program.tes.erase(broken.program.tes.begin());
        return broken;
      },
      true, "for the test"};
  const absl::Status status = RunBlockPass(kBreaks, Doubled(), {}, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'drop-the-first' made a wrong program"));
  const auto skipped = RunBlockPass(kBreaks, Doubled(), {}, {"drop-the-first"});
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_FALSE(skipped->has_value());
}

TEST(BlockPasses, APassThatCannotBeDisabledIsRefused) {
  const absl::Status status = RunBlockPass(BlockPass::kFormStages, Doubled(), {}, {"form-stages"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("pass 'form-stages' cannot be disabled"));
}

TEST(BlockPasses, ABrokenLoweringIsNamed) {
  BlockForm form = Doubled();
  form.program.outputs.push_back(77);
  EXPECT_THAT(std::string(VerifyAfter(BlockPass::kLower, form.program).message()),
              HasSubstr("pass 'lower' made a wrong program"));
}

}  // namespace
}  // namespace fusion
