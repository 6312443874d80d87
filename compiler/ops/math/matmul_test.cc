// Tests of matrix products.
#include "compiler/ops/registry/op_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const Tensor kA = F32({2, 2}, {1, 2, 3, 4});
const Tensor kB = F32({2, 3}, {1, 0, 2, 0, 1, 3});

TEST(MatMul, MatricesVectorsAndBatches) {
  EXPECT_THAT(Values(RunOp({"MatMul", {kA, kB}})), ElementsAre(1, 2, 8, 3, 4, 18));
  EXPECT_EQ(CountTes({"MatMul", {kA, kB}}), 1);
  const Tensor v = F32({2}, {1, 10});
  EXPECT_THAT(Values(RunOp({"MatMul", {kA, v}})), ElementsAre(21, 43));
  EXPECT_THAT(Values(RunOp({"MatMul", {v, kA}})), ElementsAre(31, 42));
  EXPECT_THAT(Values(RunOp({"MatMul", {v, v}})), ElementsAre(101));
  const OpCase batched{"MatMul", {F32({2, 1, 1, 2}, {1, 2, 3, 4}), F32({3, 2, 1}, {1, 0, 0, 1, 1, 1})}};
  EXPECT_THAT(Values(RunOp(batched)), ElementsAre(1, 2, 3, 3, 4, 7));
  EXPECT_EQ(TypeOf(batched)->shape, Shape({2, 3, 1, 1}));
}

TEST(MatMul, DepthMustAgree) {
  EXPECT_THAT(std::string(RunOp({"MatMul", {kB, kA}}).status().message()),
              HasSubstr("MatMul 'n': shapes [2, 3] and [2, 2] do not multiply: K is 3 and 2"));
}

TEST(Gemm, EpilogueIsASecondExpression) {
  EXPECT_EQ(CountTes({"Gemm", {kA, kB}}), 1);
  const OpCase gemm{"Gemm", {kA, kB, F32({3}, {10, 20, 30})}, {{"alpha", 2.0}, {"beta", 0.1}}};
  EXPECT_EQ(CountTes(gemm), 2);
  EXPECT_THAT(Values(RunOp(gemm)), Pointwise(FloatEq(), {3.f, 6.f, 19.f, 7.f, 10.f, 39.f}));
  const OpCase transposed{
      "Gemm", {kA, F32({3, 2}, {1, 0, 0, 1, 2, 3})}, {{"transA", int64_t{1}}, {"transB", int64_t{1}}}};
  EXPECT_THAT(Values(RunOp(transposed)), ElementsAre(1, 3, 11, 2, 4, 16));
}

TEST(Einsum, Forms) {
  const auto run = [](const char* equation, std::vector<Tensor> x) {
    return Values(RunOp({"Einsum", std::move(x), {{"equation", std::string(equation)}}}));
  };
  EXPECT_THAT(run("ik,kj->ij", {kA, kB}), ElementsAre(1, 2, 8, 3, 4, 18));
  EXPECT_THAT(run("ij->ji", {kA}), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(run("ij", {kA}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(run("...ii->...i", {kA}), ElementsAre(1, 4));
  EXPECT_THAT(run("ij->", {kA}), ElementsAre(10));
  EXPECT_THAT(run("i,i", {F32({2}, {1, 2}), F32({2}, {3, 4})}), ElementsAre(11));
  EXPECT_THAT(run("b...k, k... -> b...", {F32({1, 2}, {1, 2}), F32({2}, {3, 4})}), ElementsAre(11));
  EXPECT_THAT(std::string(RunOp({"Einsum", {kA}, {{"equation", std::string("ijk->i")}}}).status().message()),
              HasSubstr("term 'ijk' does not fit input 0 of shape [2, 2]"));
}

}  // namespace
}  // namespace fusion::ops
