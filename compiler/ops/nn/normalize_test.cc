// Tests of `normalize`: older opsets become canonical form, and losses are decomposed.
#include <cmath>

#include "compiler/ops/registry/one_node_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

std::vector<double> Import(const OpCase& op_case, int opset, int output = 0) {
  return Values(OneNodeModel(op_case, opset).Run(), output);
}

TEST(Normalize, SoftmaxBeforeOpset13FlattensAtTheAxis) {
  const Tensor x = F32({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(Import({"Softmax", {x}}, 12), ElementsAre(0.25, 0.25, 0.25, 0.25));
  EXPECT_THAT(Import({"Softmax", {x}}, 13), ElementsAre(0.5, 0.5, 0.5, 0.5));
  OneNodeModel last({"Softmax", {x}, {{"axis", int64_t{2}}}}, 12);
  EXPECT_THAT(Values(last.Run()), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_EQ(last.num_nodes(), 1);  // nothing to flatten
}

TEST(Normalize, ReduceAxesBecomeAnInput) {
  const OpCase reduce{"ReduceSum", {F32({2, 2}, {1, 2, 3, 4})}, {{"axes", std::vector<int64_t>{0}}}};
  EXPECT_THAT(Import(reduce, 11), ElementsAre(4, 6));
  OpCase max = reduce;
  max.op = "ReduceMax";
  EXPECT_THAT(Import(max, 17), ElementsAre(3, 4));
}

TEST(Normalize, ClipLimitsBecomeInputs) {
  const Tensor x = F32({3}, {-5, 1, 9});
  EXPECT_THAT(Import({"Clip", {x}, {{"min", 0.0}, {"max", 6.0}}}, 10), ElementsAre(0, 1, 6));
  EXPECT_THAT(Import({"Clip", {x}, {{"max", 6.0}}}, 7), ElementsAre(-5, 1, 6));
}

TEST(Normalize, LongScattersReadWideIndices) {
  const auto added = [](DType dtype, int64_t rows) {
    const std::vector<int64_t> indices(static_cast<size_t>(rows), 5);
    const Tensor updates = F32({rows}, std::vector<double>(static_cast<size_t>(rows), 1));
    OneNodeModel model({"ScatterElements",
                        {Tensor(DType::kF32, {4000}), Tensor::From<int64_t>(dtype, {rows}, indices), updates},
                        {{"reduction", std::string("add")}}},
                       18);
    EXPECT_EQ(Values(model.Run())[5], rows);
    return model.num_nodes();
  };
  EXPECT_EQ(added(DType::kI64, 3000), 1);
  EXPECT_EQ(added(DType::kI32, 3000), 2);  // one Cast is added
  EXPECT_EQ(added(DType::kI32, 30), 1);
}

TEST(Normalize, ScatterElementsOfWholeSlicesIsScatterND) {
  const Tensor data = F32({3, 2}, {0, 1, 2, 3, 4, 5}), updates = F32({2, 2}, {6, 7, 8, 9});
  const auto scatter = [&](const std::vector<int64_t>& indices, int64_t axis = 0) {
    return OpCase{"ScatterElements", {data, I64({2, 2}, indices), updates}, {{"axis", axis}}, {1}};
  };
  const auto becomes = [](const OpCase& op_case) {
    OneNodeModel model(op_case, 18);
    EXPECT_TRUE(model.Run().ok());
    return model.node().op;
  };
  EXPECT_THAT(Import(scatter({2, 2, -3, -3}), 18), ElementsAre(8, 9, 2, 3, 6, 7));
  EXPECT_THAT(Import(scatter({1, 1, 1, 1}), 18), ElementsAre(0, 1, 8, 9, 4, 5));  // the last update wins
  EXPECT_EQ(becomes(scatter({2, 2, -3, -3})), "ScatterND");
  EXPECT_EQ(becomes(scatter({2, 2, 0, 2})), "ScatterElements");
  EXPECT_EQ(becomes(scatter({1, 1, 0, 0}, 1)), "ScatterElements");
}

TEST(Loss, NegativeLogLikelihood) {
  const Tensor x = F32({2, 3}, {-1, -2, -3, -4, -5, -6}), target = I64({2}, {2, 0}), weight = F32({3}, {1, 1, 3});
  const auto run = [&](std::vector<std::pair<std::string, ecg::Attribute>> attrs) {
    return Values(RunOp({"NegativeLogLikelihoodLoss", {x, target, weight}, std::move(attrs)}));
  };
  EXPECT_THAT(run({{"reduction", std::string("none")}}), ElementsAre(9, 4));
  EXPECT_THAT(run({{"reduction", std::string("sum")}}), ElementsAre(13));
  EXPECT_THAT(run({}), ElementsAre(3.25));
  EXPECT_THAT(run({{"ignore_index", int64_t{0}}}), ElementsAre(3));
  EXPECT_THAT(Values(RunOp({"NegativeLogLikelihoodLoss", {x, I64({2}, {2, -100})}, {{"ignore_index", int64_t{-100}}}})),
              ElementsAre(3));
}

TEST(Loss, CrossEntropyIsLogSoftmaxAndLikelihood) {
  const OpCase loss{"SoftmaxCrossEntropyLoss", {F32({1, 2}, {0, std::log(3.0)}), I64({1}, {1})}};
  EXPECT_THAT(Import(loss, 13), Pointwise(FloatNear(1e-6), {std::log(4.0 / 3)}));
  EXPECT_THAT(Import(loss, 13, 1), Pointwise(FloatNear(1e-6), {std::log(0.25), std::log(0.75)}));
}

}  // namespace
}  // namespace fusion::ops
