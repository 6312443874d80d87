// Tests of the rule files as texts: the number of rules, and that each family states what it is.
#include "compiler/rewrite/rule_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>

#include "absl/strings/str_split.h"
#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {
namespace {

// DNNFusion §4.2: "45, 38, and 66 graph rewriting rules". A family of operators counts as one line.
TEST(RuleFiles, HoldAtLeastThePapersCounts) {
  std::map<std::string, int> lines;
  for (const RuleFile& file : RuleFiles()) {
    for (absl::string_view line : absl::StrSplit(absl::string_view(file.text.data(), file.text.size()), '\n')) {
      lines[std::string(file.name)] += !line.empty() && line[0] != '#' ? 1 : 0;
    }
  }
  EXPECT_GE(lines["associative.rules"], 45);
  EXPECT_GE(lines["distributive.rules"], 38);
  EXPECT_GE(lines["commutative.rules"], 66);
}

TEST(RuleFiles, EveryFamilyBeginsWithItsMathematics) {
  for (const RuleFile& file : RuleFiles()) {
    bool begins = true;
    for (absl::string_view line : absl::StrSplit(absl::string_view(file.text.data(), file.text.size()), '\n')) {
      EXPECT_TRUE(!begins || line.empty() || line[0] == '#') << file.name << ": " << line;
      begins = line.empty();
    }
  }
}

TEST(RuleFiles, ReadmeCountsThemRight) {
  std::ifstream file(FUSION_RULES_README);
  const std::string readme((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto table = CountRules();
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(readme, ::testing::HasSubstr(*table)) << "paste the output of `ecg-opt --print rules`";
}

}  // namespace
}  // namespace fusion::rewrite
