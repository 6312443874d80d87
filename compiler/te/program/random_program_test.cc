// Random programs: every transform keeps their numbers, and every program round-trips through text.
#include "compiler/te/testing/random_program.h"

#include <cmath>

#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/transform.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

std::vector<double> Evaluate(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<double> values;
  const auto outputs = Interpret(program, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status() << "\n" << Print(program);
  if (!outputs.ok()) return values;
  for (const Tensor& t : *outputs) {
    for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(t.GetDouble(i));
  }
  return values;
}

class RandomProgramTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomProgramTest, TransformsKeepTheNumbers) {
  const Program program = testing::RandomProgram(GetParam()).Make();
  ASSERT_TRUE(Verify(program).ok()) << Verify(program);
  std::vector<Tensor> inputs(2, Tensor(DType::kF32, {4, 6}));
  for (int64_t i = 0; i < 48; ++i) inputs[i / 24].SetDouble(i % 24, std::sin(0.71 * static_cast<double>(i + 1)));
  const std::vector<double> expected = Evaluate(program, inputs);

  const std::string text = Print(program);
  const auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(Evaluate(*parsed, inputs), expected);

  Program inlined = program;
  for (size_t t = 0; t < inlined.tes.size();) {
    const TensorId output = inlined.tes[t].outputs[0];
    const bool keep = !inlined.tes[t].IsMap() || inlined.tensors[output].role == Role::kOutput;
    if (keep) {
      ++t;
      continue;
    }
    ASSERT_TRUE(Inline(&inlined, output).ok());
    t = 0;
  }
  ASSERT_TRUE(Verify(inlined, BoundsProof::kInherited).ok()) << Verify(inlined, BoundsProof::kInherited);
  const std::vector<double> actual = Evaluate(inlined, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4 * (1 + std::fabs(expected[i]))) << text << Print(inlined);
  }

  for (const Program* p : {&program, static_cast<const Program*>(&inlined)}) {
    const Program canonical = Canonicalize(*p);
    ASSERT_TRUE(Verify(canonical, BoundsProof::kInherited).ok()) << Verify(canonical, BoundsProof::kInherited);
    EXPECT_EQ(Print(Canonicalize(canonical)), Print(canonical));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, ::testing::Range(0, 300));

}  // namespace
}  // namespace fusion::te
