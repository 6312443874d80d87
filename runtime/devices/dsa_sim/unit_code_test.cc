#include "runtime/devices/dsa_sim/unit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"

namespace fusion::dsa {
namespace {

using ::testing::HasSubstr;

// y[i] = 2.5 · x[i + 1] for the two elements of y.
constexpr char kText[] = R"(tensor f32 [4]
tensor f32 [2]
operand 0 at [1] box [3]
result 1 at [0] box [2]
step registers 3 2
  axis 1 2
  once
    splat_imm.f constant 0 0 0 0 0 0 2.5 -1
  pre
    load.f lanes 1 1 0 0 1 0 0 0
    mul.f lanes 2 0 1 0 32 0 0 -1
  store 1 2
)";

TEST(UnitCode, PrintsWhatItParses) {
  const auto code = ParseUnitCode(kText);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(PrintUnitCode(*code), kText);
  EXPECT_EQ(code->steps[0].lists[UnitStep::kPre][0].imm, 1);
  EXPECT_EQ(code->tensors[0].elements(), 4);
  EXPECT_FALSE(code->operands[0].IsWhole(code->tensors[0]));
  EXPECT_TRUE(code->results[0].IsWhole(code->tensors[1]));
}

TEST(UnitCode, ValuesSurviveTheText) {
  for (const char* value : {"0.10000000000000001", "inf", "-inf", "nan", "-0"}) {
    const std::string text = absl::StrReplaceAll(kText, {{" 2.5 ", absl::StrCat(" ", value, " ")}});
    const auto code = ParseUnitCode(text);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(PrintUnitCode(*code), text);
  }
}

TEST(UnitCode, RefusesWhatCannotRun) {
  const std::vector<std::pair<std::pair<std::string, std::string>, std::string>> cases = {
      {{"mul.f lanes 2", "mul lanes 2"}, "an operation of units"},
      {{"mul.f lanes 2", "mul.f wide 2"}, "constant, one or lanes"},
      {{"mul.f lanes 2 0 1", "mul.f lanes 3 0 1"}, "registers that the step has"},
      {{"load.f lanes 1 1 0", "load.f lanes 1 2 0"}, "registers that the step has"},
      {{"1 0 0 0\n    mul", "1 0 0 2\n    mul"}, "one of 2 tensors, not 2"},
      {{"box [3]", "box [4]"}, "a box inside [4]"},
      {{"store 1 2", "store 0 2"}, "a tensor of 2 elements"},
      {{"store 1 2", "store 1 3"}, "a register"},
      {{"axis 1 2", "axis 2 2"}, "an integer register"},
      {{"step registers 3 2", "step registers 3 0"}, "a number of registers"},
      {{"tensor f32 [4]", "tensor f99 [4]"}, "an element type"},
      {{"tensor f32 [4]", "tensor f32 [4294967296, 4294967296]"}, "smaller extents"},
      {{"  pre\n", ""}, ""},  // the list `once` goes on
      {{"  once\n", ""}, "a list of instructions"},
      {{"mul.f lanes 2 0 1 0 32 0 0 -1", "floor_div lanes 1 1 0 0 0 0 0 -1"}, "a divisor above 0"},
      {{"mul.f lanes 2 0 1 0 32 0 0 -1", "move.i lanes 0 1 0 0 0 0 0 -1"}, "registers that the step has"},
  };
  for (const auto& [change, message] : cases) {
    const std::string text = absl::StrReplaceAll(kText, {{change.first, change.second}});
    ASSERT_NE(text, kText) << change.first;
    const auto code = ParseUnitCode(text);
    if (message.empty()) {
      EXPECT_TRUE(code.ok()) << code.status();
      continue;
    }
    ASSERT_FALSE(code.ok()) << change.second;
    EXPECT_EQ(code.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(code.status().message()), HasSubstr(message)) << change.second;
    EXPECT_THAT(std::string(code.status().message()), HasSubstr("line ")) << change.second;
  }
}

}  // namespace
}  // namespace fusion::dsa
