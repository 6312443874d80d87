#include "compiler/bundle/constant_pool.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fusion {
namespace {

TEST(ConstantPool, EqualConstantsOfTwoGraphsAreOne) {
  const auto graph = [](float weight, int64_t rows) {
    ecg::Graph g;
    const ecg::ValueId x = g.AddInput("x", {DType::kF32, {rows, 2}});
    Tensor w(DType::kF32, {2});
    w.SetDouble(0, weight);
    w.SetDouble(1, 3);
    const ecg::NodeId add = g.AddNode("Add", "", {x, g.AddConstant("w", w)}, {}, {{DType::kF32, {rows, 2}}});
    g.AddOutput(g.node(add).outputs[0], "y");
    return g;
  };
  const auto weight = [](const ecg::Graph& g) { return *g.value(g.node(0).inputs[1]).constant; };
  ConstantPool pool;
  const ecg::Graph a = pool.Share(graph(1, 4)), b = pool.Share(graph(1, 8)), c = pool.Share(graph(2, 8));
  EXPECT_EQ(weight(a).data(), weight(b).data());
  EXPECT_NE(weight(a).data(), weight(c).data());
  EXPECT_EQ(weight(c).GetDouble(0), 2);
  EXPECT_EQ(b.value(b.inputs()[0]).type.shape, Shape({8, 2}));
}

}  // namespace
}  // namespace fusion
