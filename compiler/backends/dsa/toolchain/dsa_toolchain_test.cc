#include "compiler/backends/dsa/toolchain/dsa_toolchain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

constexpr char kProgram[] = R"(program p for stcp920 {
  buffer x ddr 0 f32[64] input
  buffer a lb 0.1 0 f32[64]
  buffer y ddr 256 f32[64] output
  0: load a[0 + 64:1] = x[0 + 64:1]
  1: vector vme 0.1 relu a[0 + 64:1] = a[0 + 64:1] after 0
  2: store y[0 + 64:1] = a[0 + 64:1] after 1
}
)";

absl::StatusOr<std::vector<std::string>> Build(const std::string& text, const std::string& machine = "stcp920") {
  const std::vector<BuildUnit> units = {{"dsa", machine, text}};
  return MakeDsaToolchain()->Build(units, nullptr);
}

TEST(DsaToolchain, ABinaryIsTheCheckedText) {
  const auto binaries = Build(kProgram);
  ASSERT_TRUE(binaries.ok()) << binaries.status();
  EXPECT_EQ((*binaries)[0], kProgram);
  EXPECT_TRUE(MakeDsaToolchain()->reproduces());
}

TEST(DsaToolchain, RefusesProgramsWithAReason) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {absl::StrReplaceAll(kProgram, {{"lb 0.1 0", "lb 0.1 65536"}}), "do not fit lb 0.1"},
      {absl::StrReplaceAll(kProgram, {{" after 1", ""}}), "instruction 2"},  // a race
      {absl::StrReplaceAll(kProgram, {{"load a[0 + 64:1] = x[0 + 64:1]", "load a[0 + 63:1] = x[0 + 63:1]"}}),
       "instruction 1"},  // an unwritten read
      {absl::StrReplaceAll(kProgram, {{"vme 0.1", "vme 0.9"}}), "there is no core 0.9"},
      {"program", "line 1"}};
  for (const auto& [text, reason] : cases) {
    const auto binaries = Build(text);
    ASSERT_FALSE(binaries.ok()) << reason;
    EXPECT_EQ(binaries.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(binaries.status().message()), HasSubstr("stcp920 cannot run the program: "));
    EXPECT_THAT(std::string(binaries.status().message()), HasSubstr(reason));
  }
  EXPECT_THAT(std::string(Build(kProgram, "abacus").status().message()), HasSubstr("abacus"));
}

TEST(DsaToolchain, StopsWhenItIsCancelled) {
  const std::vector<BuildUnit> units = {{"dsa", "stcp920", kProgram}};
  EXPECT_EQ(MakeDsaToolchain()->Build(units, [] { return true; }).status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace fusion
