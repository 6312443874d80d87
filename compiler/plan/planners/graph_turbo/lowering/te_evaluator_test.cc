#include "compiler/plan/planners/graph_turbo/lowering/te_evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/te/interpreter/interpreter.h"
#include "runtime/base/random_inputs.h"

namespace fusion::graph_turbo {
namespace {

using ::testing::ElementsAre;

std::vector<float> BoxOf(const Tensor& tensor, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  std::vector<float> values;
  for (int64_t r = row; r < row + rows; ++r) {
    for (int64_t c = column; c < column + columns; ++c) {
      values.push_back(static_cast<float>(tensor.GetDouble(r * tensor.shape()[1] + c)));
    }
  }
  return values;
}

TEST(TeEvaluator, APartEqualsThePartOfTheWhole) {
  // A window of three with padding, and a map of its sums.
  const auto program = te::Parse(R"(te p(%0: f32[6, 10]) {
    %1[i0<6, i1<10]: f32 = sum.f32(i2<3) %0[i0, i1 + i2 - 1]?0.0
    %2[i3<6, i4<10]: f32 = mul(%1[i3, i4], %0[i3, i4])
    return %2
  })");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const Tensor x = RandomTensor(DType::kF32, {6, 10}, 1);
  const Tensor whole = (*te::Interpret(*program, {x}))[0];
  TeEvaluator evaluator({*program});
  for (const auto& [column, columns] : {std::pair<int64_t, int64_t>{0, 4}, {3, 5}, {8, 2}}) {
    const int64_t first = std::max<int64_t>(column - 1, 0), end = std::min<int64_t>(column + columns + 1, 10);
    dsa::EvaluationRequest request;
    request.results = {{{2, column}, {3, columns}}};
    request.operands = {{{2, first}, {3, end - first}}};
    request.inputs = {0};
    request.values = {BoxOf(x, 2, 3, first, end - first)};
    const auto values = evaluator.Evaluate(request);
    ASSERT_TRUE(values.ok()) << values.status().message();
    EXPECT_EQ((*values)[0], BoxOf(whole, 2, 3, column, columns));
  }
}

TEST(TeEvaluator, APartMayMakeOneOfSeveralOutputs) {
  const auto program = te::Parse(R"(te p(%0: f32[4]) {
    %1[i0<4]: f32 = mul(%0[i0], 2.0)
    %2[i1<4]: f32 = mul(%1[i1], 10.0)
    return %1, %2
  })");
  ASSERT_TRUE(program.ok()) << program.status().message();
  TeEvaluator evaluator({*program});
  dsa::EvaluationRequest request;
  request.results = {{{1}, {2}}};
  request.operands = {{{1}, {2}}};
  request.inputs = {0};
  request.values = {{3, 4}};
  for (const auto& [output, scale] : {std::pair<int, float>{0, 2}, {1, 20}}) {
    request.outputs = {output};
    const auto values = evaluator.Evaluate(request);
    ASSERT_TRUE(values.ok()) << values.status().message();
    ASSERT_EQ(values->size(), 1u);
    EXPECT_THAT((*values)[0], ElementsAre(3 * scale, 4 * scale));
  }
}

TEST(TeEvaluator, PartsOfASumAddUp) {
  const auto program = te::Parse(R"(te p(%0: f32[2, 8], %1: f32[8, 3]) {
    %2[i0<2, i1<3]: f32 = sum.f32(i2<8) mul(%0[i0, i2], %1[i2, i1])
    return %2
  })");
  const Tensor a = RandomTensor(DType::kF32, {2, 8}, 1), b = RandomTensor(DType::kF32, {8, 3}, 2);
  const Tensor whole = (*te::Interpret(*program, {a, b}))[0];
  TeEvaluator evaluator({*program});
  std::vector<float> sum(6, 0);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 3}, {3, 8}}) {
    dsa::EvaluationRequest request;
    request.results = {{{0, 0}, {2, 3}}};
    request.operands = {{{0, begin}, {2, end - begin}}, {{begin, 0}, {end - begin, 3}}};
    request.inputs = {0, 1};
    request.values = {BoxOf(a, 0, 2, begin, end - begin), BoxOf(b, begin, end - begin, 0, 3)};
    request.reduce_begin = begin;
    request.reduce_end = end;
    const auto values = evaluator.Evaluate(request);
    ASSERT_TRUE(values.ok()) << values.status().message();
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += (*values)[0][i];
  }
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_NEAR(sum[i], whole.GetDouble(static_cast<int64_t>(i)), 1e-6);
}

TEST(TeEvaluator, AddressesComeFromAPartOfTheirTensor) {
  const auto program = te::Parse(R"(te p(%0: f32[4, 2], %1: i64[6]) {
    %2[i0<6, i1<2]: f32 = %0[%1[i0]{0..3}, i1]
    return %2
  })");
  TeEvaluator evaluator({*program});
  dsa::EvaluationRequest request;
  request.results = {{{4, 0}, {2, 2}}};
  request.operands = {{{0, 0}, {4, 2}}, {{4}, {2}}};
  request.inputs = {0, 1};
  request.values = {{0, 1, 2, 3, 4, 5, 6, 7}, {3, 1}};
  const auto values = evaluator.Evaluate(request);
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_THAT((*values)[0], ElementsAre(6, 7, 2, 3));
}

TEST(TeEvaluator, ReadsTheTextsOfAProgram) {
  dsa::Program program;
  program.expressions = {{"twice", "te twice(%0: f32[3]) {\n  %1[i0<3]: f32 = add(%0[i0], %0[i0])\n  return %1\n}\n"}};
  auto evaluator = TeEvaluator::FromTexts(program);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status().message();
  dsa::EvaluationRequest request;
  request.results = {{{1}, {2}}};
  request.operands = {{{1}, {2}}};
  request.inputs = {0};
  request.values = {{5, 6}};
  EXPECT_THAT((*evaluator->Evaluate(request))[0], ElementsAre(10, 12));
  program.expressions[0].text = "te";
  EXPECT_FALSE(TeEvaluator::FromTexts(program).ok());
}

// A window of three along columns; the operand has exactly what the results need.
dsa::EvaluationRequest Window(int64_t row, int64_t column, int64_t columns, int64_t width) {
  const int64_t first = std::max<int64_t>(column - 1, 0), end = std::min<int64_t>(column + columns + 1, width);
  dsa::EvaluationRequest request;
  request.results = {{{row, column}, {2, columns}}};
  request.operands = {{{row, first}, {2, end - first}}};
  request.inputs = {0};
  return request;
}

TEST(ExpressionParts, PartsInsideAreAlikeAndThoseOfABorderAreNot) {
  const auto program = te::Parse(R"(te p(%0: f32[8, 100]) {
    %1[i0<8, i1<100]: f32 = sum.f32(i2<3) %0[i0, i1 + i2 - 1]?0.0
    return %1
  })");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const ExpressionParts parts(*program);
  const auto text = [&](const dsa::EvaluationRequest& request) { return te::Print(parts.PartOf(request).program); };
  const dsa::EvaluationRequest inside = Window(2, 40, 10, 100), beside = Window(4, 50, 10, 100);
  EXPECT_EQ(parts.KeyOf(inside), parts.KeyOf(beside));
  EXPECT_EQ(text(inside), text(beside));
  EXPECT_NE(parts.KeyOf(inside), parts.KeyOf(Window(2, 0, 10, 100)));
  EXPECT_NE(parts.KeyOf(inside), parts.KeyOf(Window(2, 90, 10, 100)));
  EXPECT_NE(parts.KeyOf(inside), parts.KeyOf(Window(2, 40, 11, 100)));
  dsa::EvaluationRequest wider = inside;  // the operand has a column more in front
  wider.operands[0].origin[1] -= 1;
  wider.operands[0].extents[1] += 1;
  EXPECT_NE(parts.KeyOf(inside), parts.KeyOf(wider));
}

TEST(ExpressionParts, WhatDependsOnCoordinatesIsNowhereAlike) {
  const auto program = te::Parse(R"(te p(%0: f32[8, 100]) {
    %1[i0<8, i1<100]: f32 = if i1 < 45 then %0[i0, i1] else 0.0
    return %1
  })");
  ASSERT_TRUE(program.ok()) << program.status().message();
  const ExpressionParts parts(*program);
  EXPECT_NE(parts.KeyOf(Window(2, 40, 10, 100)), parts.KeyOf(Window(2, 50, 10, 100)));
  EXPECT_EQ(parts.KeyOf(Window(2, 40, 10, 100)), parts.KeyOf(Window(2, 40, 10, 100)));
}

}  // namespace
}  // namespace fusion::graph_turbo
