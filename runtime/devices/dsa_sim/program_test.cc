#include "runtime/devices/dsa_sim/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion::dsa {
namespace {

using ::testing::HasSubstr;

constexpr char kText[] = R"(program every_kind for small {
  buffer x ddr 0 f32[64] input
  buffer y ddr 256 f16[64] output
  buffer g gb 1 64 f32[64]
  buffer a lb 0.1 0 bf16[64]
  0: load g[0 + 4:16, 16:1] = x[0 + 64:1]
  1: move a[3] = g[0] after 0
  2: redistribute a[0 + 64:1] = a[0 + 64:1]
  3: matrix mme 0.1 a[0 + 4:4, 4:1] += a[16 + 4:4, 4:1] * a[32 + 4:1, 4:4] after 0, 1
  4: matrix mme 0.1 a[0 + 4:4, 4:1] = a[16 + 4:4, 4:1] * a[32 + 4:1, 4:4]
  5: vector vme 0.1 add a[0 + 4:1] = a[4 + 4:1], a[8 + 4:0]
  6: vector vme 0.1 fill a[0 + 4:1] = -1.5e-07
  7: vector vme 0.1 sum a[0 + 4:1] = a[16 + 4:4, 4:1]
  8: sync 1 after 7
  9: sync all
  10: store y[0 + 64:-1] = a[0 + 64:1]
}
)";

TEST(Program, PrintsWhatItParsed) {
  const auto program = Parse(kText);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(Print(*program), kText);
  EXPECT_EQ(PrintInstruction(*program, 8), "sync 1 after 7");
  EXPECT_EQ(PrintMemory(program->buffers[3].memory), "lb 0.1");
  EXPECT_EQ(program->instructions[6].immediate, -1.5e-7);
}

constexpr char kExpressions[] = R"(program expressions for small {
  expression twice
    te twice(%0: f32[8]) { # whatever stands here }
  end
  buffer x ddr 0 f32[64] input
  buffer a lb 0.1 0 f32[64]
  0: matrix mme 0.1 expr twice work 12345678.5 reduce 2 4 a[0 + 4:1] at (3) += a[8 + 2:2] at (0) as 1, a[16] at () as 0
  1: vector vme 0.1 expr twice work 4 a[0 + 4:1] at (3), a[4 + 4:1] at (0) = a[8 + 4:1] at (3) as 0 after 0
  2: vector vme 0.1 expr twice work 0 a[0] at () =
  3: load expr twice work 4 a[0 + 4:1] at (3) = x[0 + 8:8, 8:1] at (0, 0) as 0, a[8 + 4:1] at (3) as 1 after 1, 2
  4: vector vme 0.1 expr twice work 4 outputs (0, 2) a[0 + 4:1] at (3), a[4] at () = a[8] at () as 0
}
)";

TEST(Program, ExpressionsArePrintedAsTheyWereRead) {
  const auto program = Parse(kExpressions);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(Print(*program), kExpressions);
  ASSERT_EQ(program->expressions.size(), 1u);
  EXPECT_EQ(program->expressions[0].text, "    te twice(%0: f32[8]) { # whatever stands here }\n");
  EXPECT_EQ(program->instructions[4].part.outputs, (std::vector<int>{0, 2}));
  const ExpressionPart& part = program->instructions[3].part;
  EXPECT_EQ(part.inputs, (std::vector<int>{0, 1}));
  EXPECT_EQ(part.origins, (std::vector<std::vector<int64_t>>{{3}, {0, 0}, {3}}));
}

TEST(Program, CommentsAndEmptyLinesAreSkipped) {
  const auto program = Parse("# a program\n\nprogram p for m { # head\n  0: sync all # wait\n}\n");
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ(Print(*program), "program p for m {\n  0: sync all\n}\n");
}

TEST(Program, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected '}' after the program"},
      {"programme p for m {", "line 1: expected 'program', found programme"},
      {"program p for m {\n  0: sync all", "expected '}' after the program"},
      {"program p for m {\n}\nx", "line 3: expected nothing after the program"},
      {"program p for m {\n  1: sync all\n}", "line 2: expected buffer, } or the instruction's number 0"},
      {"program p for m {\n  0: jump\n}", "line 2: expected an instruction, found jump"},
      {"program p for m {\n  0: sync all after 0\n}", "an earlier instruction instead of 0"},
      {"program p for m {\n  0: load x[0] = y[0]\n}", "expected the name of a buffer, found x"},
      {"program p for m {\n  buffer x l3 0 f32[1]\n}", "expected ddr, gb or lb, found l3"},
      {"program p for m {\n  buffer x lb 0 0 f32[1]\n}", "expected a place such as 0.1"},
      {"program p for m {\n  buffer x gb 4294967296 0 f32[1]\n}", "expected the number of a cluster"},
      {"program p for m {\n  expression e\n  end\n  expression e\n  end\n}", "a new name instead of 'e'"},
      {"program p for m {\n  0: vector v 0.0 expr e work 1\n}", "expected the name of an expression, found e"},
      {"program p for m {\n  expression e\n", "expected '}' after the program"},
      {"program p for m {\n  0: sync -1\n}", "expected the number of a cluster, found -1"},
      {"program p for m {\n  buffer x ddr 0 float[1]\n}", "expected an element type, found float"},
      {"program p for m {\n  buffer x ddr 0 f32[1]\n  buffer x ddr 0 f32[1]\n}", "a new name instead of 'x'"},
      {"program p for m {\n  buffer x ddr 0 f32[1] output input\n}",
       "line 2: expected the end of the line, found input"},
      {"program p for m {\n  buffer x ddr 0 f32[1]\n  0: vector u 0.0 gelu x[0] = x[0]\n}",
       "an operation of a vector unit"},
      {"program p for m {\n  buffer x ddr 0 f32[1]\n  0: vector u 0.0 add x[0] = x[0]\n}",
       "expected ',', found the end"},
      {"program p for m {\n  buffer x ddr 0 f32[1]\n  0: load x[0 + 4] = x[0]\n}", "expected ':', found ]"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(std::string(Parse(text).status().message()), HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace fusion::dsa
