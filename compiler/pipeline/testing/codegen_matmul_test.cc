// Matrix products with everything that can be fused around them.
#include <gtest/gtest.h>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t k1 = 1;

FusionCase MatMul(const Shape& a, const Shape& b, bool weight) {
  G g;
  const V x = g.In(a);
  g.Out(g.Op("MatMul", {x, weight ? g.Weight(b) : g.In(b)}));
  return FusionCase("MatMul" + ShapeToString(a) + ShapeToString(b) + (weight ? "w" : ""), g);
}

TEST(CodegenMatMul, Shapes) {
  std::vector<FusionCase> cases;
  for (bool weight : {true, false}) {
    for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{5, 7}, {7, 3}},
                                                                   {{1, 70}, {70, 100}},
                                                                   {{1, 64}, {64, 48}},
                                                                   {{64, 33}, {33, 1}},
                                                                   {{9, 1}, {1, 17}},
                                                                   {{37, 40}, {40, 96}},
                                                                   {{19, 24}, {24, 50}},
                                                                   {{1, 1}, {1, 1}},
                                                                   {{7}, {7}},
                                                                   {{7}, {7, 20}},
                                                                   {{20, 7}, {7}},
                                                                   {{2, 3, 9, 20}, {2, 3, 20, 33}},
                                                                   {{2, 3, 9, 20}, {20, 33}},
                                                                   {{3, 1, 9, 20}, {1, 2, 20, 16}},
                                                                   {{9, 20}, {4, 20, 16}},
                                                                   {{4, 0}, {0, 5}},
                                                                   {{0, 4}, {4, 5}}}) {
      cases.push_back(MatMul(a, b, weight));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

Tensor Picked(const Shape& shape, const std::vector<int64_t>& values, DType dtype = DType::kI64) {
  return Tensor::From<int64_t>(dtype, shape, values);
}

// Products whose weights a router picks for each row (a mixture of experts): they are read where they lie.
TEST(CodegenMatMul, OfPickedWeights) {
  std::vector<FusionCase> cases;
  const Ints six = {0, 3, -1, 2, 3, 1};
  for (const bool constant : {true, false}) {
    const auto weights = [&](G* g, const Shape& shape) { return constant ? g->Weight(shape) : g->In(shape); };
    for (const int64_t width : {64, 40, 33, 5}) {
      for (const int64_t rows : {1, 5, 40}) {
        G g;  // x · w[ids]
        const V picked = g.Op("Gather", {weights(&g, {4, 21, width}), g.In(Picked({6}, six))});
        g.Out(g.Op("MatMul", {g.In({6, rows, 21}), picked}));
        cases.push_back(FusionCase("columns " + std::to_string(width) + " rows " + std::to_string(rows), g));
      }
      G g;  // w[ids] · x, with weights that lie along the reduction
      const V picked = g.Op("Gather", {weights(&g, {4, width, 48}), g.In(Picked({6}, six))});
      g.Out(g.Op("MatMul", {picked, g.In({6, 48, 1})}));
      cases.push_back(FusionCase("transposed " + std::to_string(width), g));
    }
    {
      G g;  // more picks than weights, each several times
      Ints many(64);
      for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * 7 % 4);
      const V picked = g.Op("GatherND", {weights(&g, {4, 32, 96}), g.In(Picked({64, 1}, many))});
      const V y = g.Op("MatMul", {g.In({64, 1, 32}), picked});
      g.Out(g.Op("Mul", {y, g.Op("Sigmoid", {y})}));
      cases.push_back(FusionCase("more picks than weights", g));
    }
    {
      G g;  // picked rows: data decide the order of the terms
      const V rows = g.Op("Gather", {weights(&g, {9, 48}), g.In(Picked({6}, six, DType::kI32))});
      g.Out(g.Op("MatMul", {g.In({7, 6}), rows}));
      cases.push_back(FusionCase("rows of the reduction", g));
    }
    {
      G g;  // picked columns are no neighbours
      Ints many(32);
      for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int64_t>(i * 5 % 37);
      const V columns = g.Op("Gather", {weights(&g, {12, 37}), g.In(Picked({32}, many))}, {{"axis", k1}});
      g.Out(g.Op("MatMul", {g.In({9, 12}), columns}));
      cases.push_back(FusionCase("columns of the result", g));
    }
    {
      G g;  // both operands are picked
      const V x = g.Op("Gather", {g.In({5, 1, 24}), g.In(Picked({6}, {4, 4, 0, 1, 2, 3}))});
      const V w = g.Op("Gather", {weights(&g, {4, 24, 32}), g.In(Picked({6}, six))});
      g.Out(g.Op("MatMul", {x, w}));
      cases.push_back(FusionCase("both operands", g));
    }
    {
      G g;  // narrow weights
      const V w = g.Op("Gather", {g.Op("Cast", {weights(&g, {4, 24, 32})}, {{"to", k1}}), g.In(Picked({6}, six))});
      g.Out(g.Op("MatMul", {g.In({6, 3, 24}), w}));
      cases.push_back(FusionCase("cast", g));
    }
    {
      G g;  // a whole expert of two layers, and the weighted sum of two of them for each token
      const V ids = g.In(Picked({6}, six));
      const V w1 = g.Op("Gather", {weights(&g, {4, 24, 64}), ids}), w2 = g.Op("Gather", {weights(&g, {4, 32, 24}), ids});
      const V bias = g.Op("Gather", {weights(&g, {4, 1, 64}), ids});
      const V y = g.Op("Add", {g.Op("MatMul", {g.In({6, 1, 24}), w1}), bias});
      const std::vector<V> halves = g.Ops("Split", {y}, {{"axis", int64_t{2}}, {"num_outputs", int64_t{2}}}, 2);
      const V gated = g.Op("Mul", {g.Op("Mul", {halves[0], g.Op("Sigmoid", {halves[0]})}), halves[1]});
      const V z = g.Op("Mul", {g.Op("MatMul", {gated, w2}), g.In({6, 1, 1})});
      g.Out(g.Op("ReduceSum", {g.Op("Reshape", {z, g.Ints({3, 2, 24})}), g.Ints({1})}, {{"keepdims", int64_t{0}}}));
      cases.push_back(FusionCase("experts", g));
    }
  }
  EXPECT_EQ(Failures(cases), "");
  std::vector<FusionCase> some;
  for (size_t c = 0; c < cases.size(); c += 3) some.push_back(cases[c]);
  const std::vector<RunOptions> others = {{NeonDevice()}, {OpenClTestDevice(4, 32)}, {OpenClTestDevice(16, 1)},
                                          {CudaTestDevice(64)}};
  std::vector<RunOptions> runnable;
  for (const RunOptions& one : others) {
    if (CanRun(one.device).ok()) runnable.push_back(one);
  }
  EXPECT_EQ(Failures(some, runnable), "");
}

TEST(CodegenMatMul, LargeShapes) {
  std::vector<FusionCase> cases;
  cases.push_back(MatMul({128, 768}, {768, 768}, true));
  cases.push_back(MatMul({197, 64}, {64, 197}, false));
  cases.push_back(MatMul({1, 768}, {768, 1000}, true));
  {
    G g;
    const V x = g.Op("Add", {g.Op("MatMul", {g.In({64, 96}), g.Weight({96, 128})}), g.In({64, 128})});
    g.Out(g.Op("LayerNormalization", {x, g.Weight({128}), g.Weight({128})}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("product, residual, layernorm", g));
  }
  {
    G g;
    auto heads = [&](const Ints& perm) {
      return g.Op("Transpose", {g.Op("Reshape", {g.In({1, 64, 128}), g.Ints({1, 64, 4, 32})})}, {{"perm", perm}});
    };
    const V scores = g.Op("Mul", {g.Op("MatMul", {heads({0, 2, 1, 3}), heads({0, 2, 3, 1})}), g.Scalar(0.25)});
    const V context = g.Op("MatMul", {g.Op("Softmax", {scores}, {{"axis", int64_t{-1}}}), heads({0, 2, 1, 3})});
    g.Out(g.Op("Reshape", {g.Op("Transpose", {context}, {{"perm", Ints{0, 2, 1, 3}}}), g.Ints({1, 64, 128})}));
    cases.push_back(FusionCase("large attention", g));
  }
  {
    G g;  // values and keys are parts of one wide tensor, so that a row of a head is far from the next; 200 keys fill
          // no fusion block
    const std::vector<V> parts = g.Ops("Split", {g.In({1, 200, 3 * 640})}, {{"axis", int64_t{2}}}, 3);
    auto heads = [&](V x, const Ints& perm) {
      return g.Op("Transpose", {g.Op("Reshape", {x, g.Ints({1, 200, 20, 32})})}, {{"perm", perm}});
    };
    const V scores = g.Op("MatMul", {heads(parts[0], {0, 2, 1, 3}), heads(parts[1], {0, 2, 3, 1})});
    const V weights = g.Op("Softmax", {g.Op("Mul", {scores, g.Scalar(0.25)})}, {{"axis", int64_t{-1}}});
    const V context = g.Op("MatMul", {weights, heads(parts[2], {0, 2, 1, 3})});
    g.Out(g.Op("Reshape", {g.Op("Transpose", {context}, {{"perm", Ints{0, 2, 1, 3}}}), g.Ints({1, 200, 640})}));
    cases.push_back(FusionCase("attention over far rows", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenMatMul, TransposedOperands) {
  std::vector<FusionCase> cases;
  for (bool weight : {true, false}) {
    G g;
    const V b = g.Op("Transpose", {weight ? g.Weight({50, 24}) : g.In({50, 24})}, {{"perm", Ints{1, 0}}});
    g.Out(g.Op("MatMul", {g.In({19, 24}), b}));
    cases.push_back(FusionCase(std::string("transposed B") + (weight ? " weight" : ""), g));
  }
  {
    G g;
    g.Out(g.Op("MatMul", {g.Op("Transpose", {g.In({24, 19})}, {{"perm", Ints{1, 0}}}), g.Weight({24, 33})}));
    cases.push_back(FusionCase("transposed A", g));
  }
  {
    G g;  // attention scores: both operands split into heads
    auto heads = [&](V x, const Ints& perm) {
      return g.Op("Transpose", {g.Op("Reshape", {x, g.Ints({2, 9, 3, 16})})}, {{"perm", perm}});
    };
    const V q = heads(g.In({2, 9, 48}), {0, 2, 1, 3}), k = heads(g.In({2, 9, 48}), {0, 2, 3, 1});
    const V scores = g.Op("Softmax", {g.Op("Mul", {g.Op("MatMul", {q, k}), g.Scalar(0.25)})}, {{"axis", int64_t{-1}}});
    const V context = g.Op("MatMul", {scores, heads(g.In({2, 9, 48}), {0, 2, 1, 3})});
    g.Out(g.Op("Reshape", {g.Op("Transpose", {context}, {{"perm", Ints{0, 2, 1, 3}}}), g.Ints({2, 9, 48})}));
    cases.push_back(FusionCase("attention", g));
  }
  for (int64_t ta : {0, 1}) {
    for (int64_t tb : {0, 1}) {
      G g;
      const V a = g.In(ta ? Shape{24, 19} : Shape{19, 24}), b = g.Weight(tb ? Shape{50, 24} : Shape{24, 50});
      g.Out(g.Op("Gemm", {a, b, g.Weight({50})}, {{"transA", ta}, {"transB", tb}, {"alpha", 0.5}, {"beta", 2.0}}));
      cases.push_back(FusionCase("Gemm" + ShapeToString({ta, tb}), g));
    }
  }
  {
    G g;
    g.Out(g.Op("Gemm", {g.In({3, 20}), g.In({20, 16}), g.In({3, 1})}));
    cases.push_back(FusionCase("Gemm, column bias", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenMatMul, Epilogues) {
  std::vector<FusionCase> cases;
  auto product = [](G* g, int64_t n) {
    return g->Op("Add", {g->Op("MatMul", {g->In({2, 9, 20}), g->Weight({20, n})}), g->Weight({n})});
  };
  {
    G g;
    const V x = product(&g, 40);
    const V erf = g.Op("Erf", {g.Op("Div", {x, g.Scalar(1.4142135)})});
    g.Out(g.Op("Mul", {g.Op("Mul", {x, g.Op("Add", {erf, g.Scalar(1)})}), g.Scalar(0.5)}));
    cases.push_back(FusionCase("bias, gelu", g));
  }
  {
    G g;
    g.Out(g.Op("Relu", {g.Op("Add", {product(&g, 40), g.In({2, 9, 40})})}));
    cases.push_back(FusionCase("bias, residual, relu", g));
  }
  for (int64_t width : {16, 20}) {
    G g;
    const V x = g.Op("Reshape", {product(&g, 3 * width), g.Ints({2, 9, 3, width})});
    g.Out(g.Op("Transpose", {x}, {{"perm", Ints{0, 2, 1, 3}}}));
    cases.push_back(FusionCase("split heads " + std::to_string(width), g));
  }
  {
    G g;
    const V x = g.Op("Reshape", {product(&g, 48), g.Ints({2, 9, 3, 16})});
    g.Out(g.Op("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}}));
    cases.push_back(FusionCase("split heads, transposed", g));
  }
  {
    G g;
    const V x = product(&g, 40);
    g.Out(x);
    g.Out(g.Op("Tanh", {x}));
    cases.push_back(FusionCase("two results", g));
  }
  {
    G g;
    const V x = product(&g, 40);
    g.Out(g.Op("LayerNormalization", {g.Op("Add", {x, g.In({2, 9, 40})}), g.Weight({40}), g.Weight({40})},
               {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("residual, layernorm", g));
  }
  {
    G g;  // a computed operand
    const V x = g.Op("Relu", {g.In({9, 20})});
    g.Out(g.Op("MatMul", {x, g.Weight({20, 33})}));
    cases.push_back(FusionCase("relu before", g));
  }
  {
    G g;
    const V parts = product(&g, 48);
    const std::vector<V> split = g.Ops("Split", {parts}, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{3}}}, 3);
    for (V v : split) g.Out(v);
    cases.push_back(FusionCase("qkv split", g));
  }
  {
    G g;
    const V x = g.In({4, 33});
    g.Out(g.Op("MatMul", {g.Op("MatMul", {x, g.Weight({33, 20})}), g.Weight({20, 17})}));
    cases.push_back(FusionCase("two products", g));
  }
  {
    G g;
    g.Out(g.Op("MatMul", {g.In({9, 20}, DType::kF64), g.In({20, 33}, DType::kF64)}));
    g.Out(g.Op("MatMul", {g.In({9, 20}, DType::kF16), g.In({20, 33}, DType::kF16)}));
    g.Out(g.Op("MatMul", {g.In({9, 20}, DType::kI32), g.In({20, 33}, DType::kI32)}));
    cases.push_back(FusionCase("other types", g));
  }
  {
    G g;
    g.Out(g.Op("Einsum", {g.In({3, 5, 7}), g.In({3, 7, 20})}, {{"equation", std::string("bij,bjk->bik")}}));
    cases.push_back(FusionCase("einsum", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

}  // namespace
}  // namespace fusion::testing
