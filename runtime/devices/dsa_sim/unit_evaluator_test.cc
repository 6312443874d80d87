#include "runtime/devices/dsa_sim/unit_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::dsa {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y[i] = Σ_k x[i, k] of rows 1 and 2 of a tensor of three; the operand is columns 1 and 2 of these rows.
constexpr char kRows[] = R"(tensor f32 [3, 3]
tensor f32 [2]
operand 0 at [1, 1] box [2, 2]
result 1 at [0] box [2]
step registers 3 4
  axis 1 2
  reduce 2 3
  once
    splat_imm.f constant 0 0 0 0 0 0 0 -1
  pre
    add_mul lanes 3 0 1 0 3 0 0 -1
  init
    move.f lanes 1 0 0 0 0 0 0 -1
  each
    load.f lanes 2 3 2 0 3 0 0 0
    add.f lanes 1 1 2 0 0 0 0 -1
  store 1 1
)";

Program ProgramWith(const std::string& code) {
  const auto program = Parse("program p for small {\n  expression e\n" + code + R"(  end
  buffer x lb 0.0 0 f32[4]
  buffer y lb 0.0 16 f32[2]
  0: vector vme 0.0 expr e work 4 y[0 + 2:1] at (1) = x[0 + 2:2, 2:1] at (1, 1) as 0
}
)");
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

EvaluationRequest Request(std::vector<float> values) {
  EvaluationRequest request;
  request.results = {{{1}, {2}}};
  request.operands = {{{1, 1}, {2, 2}}};
  request.inputs = {0};
  request.values = {std::move(values)};
  return request;
}

TEST(UnitEvaluator, SumsRowsOfABox) {
  auto evaluator = UnitEvaluator::Create(ProgramWith(kRows));
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  for (int run = 0; run < 2; ++run) {  // nothing is left of the first
    const auto values = evaluator->Evaluate(Request({1, 2, 3, 4}));
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_THAT((*values)[0], ElementsAre(3, 7)) << "what no operand is for is zero";
  }
}

TEST(UnitEvaluator, RefusesAnIntegerThatAFloatDoesNotHold) {
  const auto program = Parse(R"(program p for small {
  expression e
tensor i64 [2]
operand 0 at [0] box [2]
tensor i64 [2]
result 1 at [0] box [2]
step registers 0 4
  axis 1 2
  pre
    load.i lanes 2 1 0 0 0 0 0 0
    mul.i lanes 3 2 2 0 0 0 0 -1
  store 1 3
  end
  buffer x lb 0.0 0 f32[2]
  buffer y lb 0.0 16 f32[2]
  0: vector vme 0.0 expr e work 2 y[0 + 2:1] at (0) = x[0 + 2:1] at (0) as 0
}
)");
  ASSERT_TRUE(program.ok()) << program.status();
  auto evaluator = UnitEvaluator::Create(*program);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EXPECT_TRUE(evaluator->MakesIntegers(0, 0));
  EvaluationRequest request;
  request.results = {{{0}, {2}}};
  request.operands = {{{0}, {2}}};
  request.inputs = {0};
  request.values = {{3, 4096}};
  const auto exact = evaluator->Evaluate(request);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_THAT((*exact)[0], ElementsAre(9, 1 << 24));
  request.values = {{3, 4097}};
  const absl::Status refused = evaluator->Evaluate(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a result is 16785409"));
}

TEST(UnitEvaluator, LongDomainsAreStrips) {
  std::string code = R"(tensor f32 [1000]
tensor f16 [1000]
operand 0 at [0] box [1000]
result 1 at [998] box [2]
step registers 1 2
  axis 1 1000
  pre
    load.f lanes 0 1 0 0 0 0 0 0
  store 1 0
)";
  auto program = Parse("program p for small {\n  expression e\n" + code + R"(  end
  buffer x lb 0.0 0 f32[1000]
  buffer y lb 0.0 4000 f32[2]
  0: vector vme 0.0 expr e work 4 y[0 + 2:1] at (998) = x[0 + 1000:1] at (0) as 0
}
)");
  ASSERT_TRUE(program.ok()) << program.status();
  auto evaluator = UnitEvaluator::Create(*program);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EvaluationRequest request;
  request.results = {{{998}, {2}}};
  request.operands = {{{0}, {1000}}};
  request.inputs = {0};
  request.values.emplace_back(1000, 0.0F);
  request.values[0][998] = 7;
  request.values[0][999] = 1.0F / 3;
  const auto values = evaluator->Evaluate(request);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0], ElementsAre(7, HalfToFloat(FloatToHalf(1.0F / 3)))) << "results round to their type";
}

TEST(UnitEvaluator, AnAddressFromDataIsChecked) {
  const std::string code = R"(tensor i64 [1]
tensor f32 [2]
tensor f32 [1]
operand 0 at [0] box [1]
operand 1 at [0] box [2]
result 2 at [0] box [1]
step registers 1 3
  axis 1 1
  pre
    load.i lanes 2 1 0 0 0 0 0 0
    load.f lanes 0 2 0 0 0 0 0 1
  store 2 0
)";
  auto program = Parse("program p for small {\n  expression pick\n" + code + R"(  end
  buffer i lb 0.0 0 f32[1]
  buffer x lb 0.0 4 f32[2]
  buffer y lb 0.0 12 f32[1]
  0: vector vme 0.0 expr pick work 1 y[0 + 1:1] at (0) = i[0 + 1:1] at (0) as 0, x[0 + 2:1] at (0) as 1
}
)");
  ASSERT_TRUE(program.ok()) << program.status();
  auto evaluator = UnitEvaluator::Create(*program);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status();
  EvaluationRequest request;
  request.results = {{{0}, {1}}};
  request.operands = {{{0}, {1}}, {{0}, {2}}};
  request.inputs = {0, 1};
  request.values = {{1}, {3, 4}};
  auto values = evaluator->Evaluate(request);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0], ElementsAre(4));
  request.values[0] = {2};
  values = evaluator->Evaluate(request);
  EXPECT_EQ(values.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(values.status().message()), HasSubstr("pick"));
  EXPECT_THAT(std::string(values.status().message()), HasSubstr("element 2 lies outside of a tensor of 2 elements"));
  request.values[0] = {0};
  EXPECT_TRUE(evaluator->Evaluate(request).ok()) << "the next run does not remember";
}

TEST(UnitEvaluator, RefusesCodeThatIsNotOfItsInstruction) {
  std::string other = kRows;
  other.replace(other.find("box [2]\nstep"), 7, "box [1]");
  const auto evaluator = UnitEvaluator::Create(ProgramWith(other));
  ASSERT_FALSE(evaluator.ok());
  EXPECT_THAT(std::string(evaluator.status().message()),
              HasSubstr("instruction 0 has other operands or results than expression e computes with"));
  const auto text = UnitEvaluator::Create(ProgramWith("te p(%0: f32[2]) {\n"));
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("expression e: line 1 of unit code"));
}

}  // namespace
}  // namespace fusion::dsa
