// Elementwise chains, reductions, normalisations, types and not-a-numbers through the printed kernels.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "compiler/movement/print.h"
#include "compiler/pipeline/testing/narrow_cases.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t k1 = 1, k0 = 0;

V Gelu(G* g, V x) {
  const V erf = g->Op("Erf", {g->Op("Div", {x, g->Scalar(1.4142135381698608)})});
  return g->Op("Mul", {g->Op("Mul", {x, g->Op("Add", {erf, g->Scalar(1)})}), g->Scalar(0.5)});
}

V LayerNorm(G* g, V x, int64_t width) {
  return g->Op("LayerNormalization", {x, g->Weight({width}), g->Weight({width})},
               {{"axis", int64_t{-1}}, {"epsilon", 1e-5}});
}

FusionCase Binary(const std::string& op, const Shape& a, const Shape& b) {
  G g;
  g.Out(g.Op(op, {g.In(a), g.In(b)}));
  return FusionCase(op + ShapeToString(a) + ShapeToString(b), g);
}

FusionCase Unary(const std::string& op, const Shape& shape, const G::Attrs& attrs = {}, DType dtype = DType::kF32) {
  G g;
  g.Out(g.Op(op, {g.In(shape, dtype)}, attrs));
  return FusionCase(op + ShapeToString(shape) + DTypeName(dtype), g);
}

TEST(CodegenElementwise, Broadcasting) {
  std::vector<FusionCase> cases;
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{2, 3, 37}, {37}},
                                                                 {{37}, {2, 3, 37}},
                                                                 {{2, 3, 37}, {3, 1}},
                                                                 {{5, 1, 48}, {1, 7, 1}},
                                                                 {{4, 1}, {1, 33}},
                                                                 {{}, {19}},
                                                                 {{1}, {1}},
                                                                 {{}, {}},
                                                                 {{2, 0, 3}, {3}},
                                                                 {{2, 24, 5, 5}, {24, 1, 1}},
                                                                 {{1, 3, 1, 17}, {1, 1, 9, 1}},
                                                                 {{300, 257}, {300, 1}}}) {
    cases.push_back(Binary("Add", a, b));
    cases.push_back(Binary("Max", a, b));
  }
  cases.push_back(Binary("Sub", {9, 16}, {16}));
  cases.push_back(Binary("Div", {9, 31}, {9, 31}));
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenElementwise, UnaryOperators) {
  std::vector<FusionCase> cases;
  for (const char* op : {"Abs",       "Acos", "Asin", "Asinh",      "Atan",     "Atanh", "Ceil",        "Celu",
                         "Cos",       "Cosh", "Elu",  "Erf",        "Exp",      "Floor", "HardSigmoid", "HardSwish",
                         "LeakyRelu", "Mish", "Neg",  "Reciprocal", "Relu",     "Round", "Selu",        "Sigmoid",
                         "Sign",      "Sin",  "Sinh", "Softplus",   "Softsign", "Tan",   "Tanh"}) {
    cases.push_back(Unary(op, {3, 37}));
  }
  for (const char* op : {"Log", "Sqrt", "Acosh"}) {
    G g;
    const V x = g.In({3, 37});
    g.Out(g.Op(op, {g.Op("Add", {g.Op("Mul", {x, x}), g.Scalar(1.0)})}));
    cases.push_back(FusionCase(op, g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenElementwise, Chains) {
  std::vector<FusionCase> cases;
  {
    G g;
    g.Out(Gelu(&g, g.In({13, 77})));
    cases.push_back(FusionCase("gelu", g));
  }
  {
    G g;  // one value read by two outputs
    const V x = g.In({6, 40});
    const V y = g.Op("Exp", {g.Op("Mul", {x, g.In({40})})});
    g.Out(y);
    g.Out(g.Op("Add", {y, g.Op("Sigmoid", {x})}));
    cases.push_back(FusionCase("two results", g));
  }
  {
    G g;
    const V x = g.In({4, 33});
    g.Out(g.Op("Where", {g.Op("Greater", {x, g.In({33})}), g.Op("Tanh", {x}), g.Scalar(-2)}));
    cases.push_back(FusionCase("where", g));
  }
  {
    G g;
    const V x = g.In({4, 33});
    const V both = g.Op("And", {g.Op("Less", {x, g.Scalar(0.3)}), g.Op("Not", {g.Op("Less", {x, g.Scalar(-0.3)})})});
    g.Out(both);
    g.Out(g.Op("Xor", {both, g.In({33}, DType::kBool)}));
    cases.push_back(FusionCase("logic", g));
  }
  {
    G g;
    const V x = g.In({4, 33});
    g.Out(g.Op("Pow", {x, g.Scalar(2)}));
    g.Out(g.Op("Pow", {x, g.Scalar(3)}));
    g.Out(g.Op("Pow", {g.Op("Abs", {x}), g.Scalar(0.5)}));
    g.Out(g.Op("Pow", {g.Op("Abs", {x}), g.Scalar(1.7)}));
    cases.push_back(FusionCase("powers", g));
  }
  {
    G g;
    const V x = g.In({2, 24, 6, 5});
    g.Out(g.Op("Clip", {g.Op("Mul", {x, g.Weight({24, 1, 1})}), g.Scalar(-0.2), g.Scalar(0.3)}));
    cases.push_back(FusionCase("channel scale, clip", g));
  }
  {
    G g;
    g.Out(g.Op("PRelu", {g.In({2, 24, 6, 5}), g.Weight({24, 1, 1})}));
    cases.push_back(FusionCase("prelu", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenElementwise, NarrowTypes) { EXPECT_EQ(Failures(NarrowCases()), ""); }

TEST(CodegenElementwise, Types) {
  std::vector<FusionCase> cases;
  const DType all[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI8,  DType::kI16, DType::kI32,
                       DType::kI64, DType::kU8,  DType::kU16, DType::kU32,  DType::kU64, DType::kBool};
  const int64_t onnx[] = {1, 11, 10, 16, 3, 5, 6, 7, 2, 4, 12, 13, 9};
  for (size_t from = 0; from < std::size(all); ++from) {
    G g;
    V x = g.In({3, 21}, all[from]);
    for (size_t to = 0; to < std::size(all); ++to) {
      // Negative values to unsigned types are undefined in ONNX.
      if (IsFloat(all[from]) && !IsSigned(all[to]) && all[to] != DType::kBool) continue;
      g.Out(g.Op("Cast", {x}, {{"to", onnx[to]}}));
    }
    cases.push_back(FusionCase(std::string("cast from ") + DTypeName(all[from]), g));
  }
  for (DType dtype : {DType::kF64, DType::kF16, DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kU64}) {
    G g;
    const V x = g.In({5, 19}, dtype), y = g.In({19}, dtype);
    g.Out(g.Op("Add", {g.Op("Mul", {x, y}), x}));
    g.Out(g.Op("Sub", {x, y}));
    g.Out(g.Op("Max", {x, y}));
    g.Out(g.Op("Less", {x, y}));
    cases.push_back(FusionCase(std::string("arithmetic ") + DTypeName(dtype), g));
  }
  for (DType dtype : {DType::kF64, DType::kF16, DType::kI32, DType::kI64}) {
    G g;
    const V x = g.In({5, 19}, dtype);
    g.Out(g.Op("ReduceSum", {x, g.Ints({1})}));
    g.Out(g.Op("ReduceMax", {x, g.Ints({0})}));
    cases.push_back(FusionCase(std::string("reduce ") + DTypeName(dtype), g));
  }
  {
    G g;
    const V x = g.In({5, 19}, DType::kI64);
    g.Out(g.Op("Div", {x, g.Op("Add", {g.In({19}, DType::kI64), g.Scalar(1, DType::kI64)})}));
    g.Out(g.Op("Mod", {g.Op("Neg", {x}), g.Scalar(3, DType::kI64)}));
    cases.push_back(FusionCase("integer division", g));
  }
  {
    G g;  // masks as BERT makes them: integer to float in the middle of a float chain
    const V mask = g.Op("Cast", {g.In({2, 1, 1, 24}, DType::kI64)}, {{"to", int64_t{1}}});
    g.Out(g.Op("Add", {g.In({2, 3, 5, 24}), g.Op("Mul", {g.Op("Sub", {g.Scalar(1), mask}), g.Scalar(-10000)})}));
    cases.push_back(FusionCase("mask", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Neighbours of ties: their differences from what C++ makes of them are zero, so that no tolerance hides a unit in the
// last place.
TEST(CodegenElementwise, LongIntegersRoundOnceToFloats) {
  std::vector<int64_t> values = {0, 1, -1, INT64_MAX, INT64_MIN};
  for (int bit = 23; bit < 63; ++bit) {
    const int64_t power = int64_t{1} << bit, half = bit > 24 ? int64_t{1} << (bit - 24) : 1;
    for (const int64_t near : {power, power + half, power + 3 * half}) {
      for (const int64_t step : {-1, 0, 1}) {
        values.push_back(near + step);
        values.push_back(-near - step);
      }
    }
  }
  while (values.size() % 16 != 5)
    values.push_back(static_cast<int64_t>(values.size()));  // the last vector is not whole
  const Shape shape = {static_cast<int64_t>(values.size())};
  Tensor expected(DType::kF32, shape);
  for (size_t i = 0; i < values.size(); ++i) expected.SetDouble(static_cast<int64_t>(i), static_cast<float>(values[i]));
  G g;
  const V x = g.In(Tensor::From<int64_t>(DType::kI64, shape, values));
  g.Out(g.Op("Sub", {g.Op("Cast", {x}, {{"to", int64_t{1}}}), g.In(expected)}));
  EXPECT_EQ(Failures({FusionCase("i64 to f32", g)}), "");
}

TEST(CodegenReduction, AxesAndKinds) {
  std::vector<FusionCase> cases;
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceLogSumExp"}) {
    for (const Ints& axes : std::vector<Ints>{{0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}) {
      G g;
      g.Out(g.Op(op, {g.In({5, 21, 35}), g.Ints(axes)}, {{"keepdims", axes.size() == 2 ? k0 : k1}}));
      cases.push_back(FusionCase(op + ShapeToString(axes), g));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

// Column reductions with their sums in the task's scratch: rows in parts and whole, tiles that do not divide the
// columns, axes before and behind the reduced one.
TEST(CodegenReduction, ColumnsBeyondTheCaches) {
  std::vector<FusionCase> cases;
  for (const auto& [shape, axes] : std::vector<std::pair<Shape, Ints>>{
           {{1024, 300}, {0}}, {{1023, 300}, {0}}, {{70, 4100}, {0}}, {{5, 200, 264}, {1}}, {{64, 16, 304}, {0, 1}}}) {
    G g;
    const V x = g.In(shape);
    g.Out(g.Op("Relu", {g.Op("ReduceMean", {x, g.Ints(axes)})}));
    cases.push_back(FusionCase("mean " + ShapeToString(shape) + ShapeToString(axes), g));
  }
  G g;
  g.Out(g.Op("ReduceSumSquare", {g.In({512, 600}), g.Ints({0})}));
  cases.push_back(FusionCase("squares", g));
  // A product as a reduction (ReduceProd) has tiles, too.
  for (const auto& [shape, axis] :
       std::vector<std::pair<Shape, int64_t>>{{{512, 1024}, 0}, {{40, 1100}, 0}, {{3, 40, 96}, 1}}) {
    G g;
    g.Out(g.Op("ReduceProd", {g.In(shape), g.Ints({axis})}));
    cases.push_back(FusionCase("product " + ShapeToString(shape), g));
  }
  G remainder;  // an epilogue without a vector form
  const V mean = remainder.Op("ReduceMean", {remainder.In({1024, 300}), remainder.Ints({0})});
  const V whole = remainder.Op("Cast", {remainder.Op("Mul", {mean, remainder.Scalar(1e4)})}, {{"to", int64_t{6}}});
  remainder.Out(remainder.Op("Mod", {whole, remainder.Scalar(7, DType::kI32)}));
  cases.push_back(FusionCase("remainder", remainder));
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenReduction, Shapes) {
  std::vector<FusionCase> cases;
  for (const Shape& shape :
       std::vector<Shape>{{1, 1}, {1, 1000}, {1000, 1}, {3, 15}, {3, 16}, {3, 17}, {64, 64}, {2, 0}, {0, 2}}) {
    for (int64_t axis : {0, 1}) {
      G g;
      const V x = g.In(shape);
      g.Out(g.Op("ReduceSum", {x, g.Ints({axis})}));
      if (shape[axis] > 0) g.Out(g.Op("ReduceMax", {x, g.Ints({axis})}));
      cases.push_back(FusionCase("reduce " + ShapeToString(shape) + ShapeToString({axis}), g));
    }
  }
  for (int64_t axis : {0, 1, 2}) {
    for (const char* op : {"ArgMax", "ArgMin"}) {
      G g;
      g.Out(g.Op(op, {g.In({4, 9, 33})}, {{"axis", axis}, {"keepdims", k0}}));
      cases.push_back(FusionCase(op + ShapeToString({axis}), g));
    }
    G g;
    const V x = g.In({4, 9, 33});
    g.Out(g.Op("CumSum", {x, g.Scalar(static_cast<double>(axis), DType::kI64)}));
    g.Out(g.Op("CumSum", {x, g.Scalar(static_cast<double>(axis), DType::kI64)}, {{"exclusive", k1}, {"reverse", k1}}));
    cases.push_back(FusionCase("CumSum" + ShapeToString({axis}), g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Rows of several parts (scores of local and of global keys, side by side) that are reduced in one kernel: their
// reductions run part by part, in vectors.
TEST(CodegenReduction, RowsOfParts) {
  std::vector<FusionCase> cases;
  for (const Ints& parts : std::vector<Ints>{{32, 512}, {16, 16}, {40, 100}, {3, 200}, {64, 5}, {16, 32, 48}, {7, 5, 90},
                                             {1, 1, 1, 1, 1, 1, 1, 90}, {20}}) {
    for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum", "Softmax"}) {
      G g;
      std::vector<V> values;
      for (const int64_t part : parts) values.push_back(g.In({6, part}));
      const V row = g.Op("Concat", values, {{"axis", int64_t{1}}});
      const V sum = g.Op("Add", {row, g.In({g.graph().value(row).type.shape[1]})});
      g.Out(op == std::string("Softmax") ? g.Op(op, {sum}, {{"axis", int64_t{1}}})
                                         : g.Op(op, {sum, g.Ints({1})}, {{"keepdims", int64_t{0}}}));
      cases.push_back(FusionCase(op + ShapeToString(parts), g));
    }
  }
  {
    G g;  // infinities and a NaN, in either part
    const float kInfinity = std::numeric_limits<float>::infinity();
    std::vector<double> first(4 * 32, -kInfinity), second(4 * 70, 1);
    second[3] = kInfinity, second[70 + 69] = std::nanf(""), first[2 * 32] = std::nanf(""), second[3 * 70] = -kInfinity;
    const V row = g.Op("Concat", {g.In(Tensor::From<double>(DType::kF32, {4, 32}, first)),
                                  g.In(Tensor::From<double>(DType::kF32, {4, 70}, second))},
                       {{"axis", int64_t{1}}});
    for (const char* op : {"ReduceMax", "ReduceMin", "ReduceSum"}) {
      g.Out(g.Op(op, {row, g.Ints({1})}, {{"keepdims", int64_t{0}}}));
    }
    cases.push_back(FusionCase("hard", g));
  }
  EXPECT_EQ(Failures(cases), "");
  std::vector<RunOptions> others;
  for (const DeviceModel& device : {NeonDevice(), OpenClTestDevice(16, 1), OpenClTestDevice(4, 32), CudaTestDevice(64)}) {
    if (CanRun(device).ok()) others.push_back({device});
  }
  const std::vector<FusionCase> some(cases.begin(), cases.begin() + 8);
  EXPECT_EQ(Failures(some, others), "");
}

TEST(CodegenNormalization, SoftmaxOverEveryAxis) {
  std::vector<FusionCase> cases;
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    for (int64_t axis : {0, 1, 2}) {
      for (const Shape& shape : std::vector<Shape>{{3, 7, 37}, {1, 12, 64}, {5, 1, 1}, {2, 9, 5}, {3, 2, 13}}) {
        G g;
        g.Out(g.Op(op, {g.In(shape)}, {{"axis", axis}}));
        cases.push_back(FusionCase(op + ShapeToString(shape) + ShapeToString({axis}), g));
      }
    }
  }
  {
    G g;  // attention's scale, mask and softmax
    const V x = g.Op("Add", {g.Op("Div", {g.In({2, 3, 9, 24}), g.Scalar(8)}), g.In({2, 1, 1, 24})});
    g.Out(g.Op("Softmax", {x}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("masked softmax", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Masks made from 64-bit integers, as in language models: one lane at a time between vector operations.
TEST(CodegenElementwise, MasksFromWideIntegers) {
  std::vector<FusionCase> cases;
  std::vector<int64_t> bits(37);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<int64_t>(i % 5) - 1;
  const auto mask = [&](G* g) { return g->In(Tensor::From<int64_t>(DType::kI64, {1, 1, 1, 37}, bits)); };
  {
    G g;
    const V open = g.Op("Cast", {mask(&g)}, {{"to", int64_t{1}}});
    const V added = g.Op("Mul", {g.Op("Sub", {g.Scalar(1), open}), g.Scalar(-1e4)});
    g.Out(g.Op("Add", {g.In({2, 3, 9, 37}), added}));
    cases.push_back(FusionCase("mask that is added", g));
  }
  {
    G g;
    const V closed = g.Op("Equal", {mask(&g), g.Scalar(0, DType::kI64)});
    g.Out(g.Op("Where", {closed, g.Scalar(-1e9), g.In({2, 3, 9, 37})}));
    cases.push_back(FusionCase("mask that selects", g));
  }
  {
    G g;  // the mask is also an output, because other layers read it; tasks take columns
    const V open = g.Op("Mul", {g.Op("Cast", {mask(&g)}, {{"to", int64_t{1}}}), g.Scalar(-1e4)});
    g.Out(open);
    g.Out(g.Op("Add", {g.In({2, 30, 200, 37}), open}));
    cases.push_back(FusionCase("mask and sum", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenNormalization, Norms) {
  std::vector<FusionCase> cases;
  for (int64_t width : {1, 7, 16, 37, 768}) {
    G g;
    g.Out(LayerNorm(&g, g.In({2, 5, width}), width));
    cases.push_back(FusionCase("layernorm " + std::to_string(width), g));
  }
  {
    G g;
    const V sum = g.Op("Add", {g.In({1, 9, 48}), g.Op("Add", {g.In({1, 9, 48}), g.Weight({48})})});
    g.Out(sum);
    g.Out(LayerNorm(&g, sum, 48));
    cases.push_back(FusionCase("residual layernorm", g));
  }
  {
    G g;  // the decomposition that exporters write
    const V x = g.In({2, 9, 48});
    const V d = g.Op("Sub", {x, g.Op("ReduceMean", {x, g.Ints({-1})})});
    const V var = g.Op("ReduceMean", {g.Op("Pow", {d, g.Scalar(2)}), g.Ints({-1})});
    const V n = g.Op("Div", {d, g.Op("Sqrt", {g.Op("Add", {var, g.Scalar(1e-5)})})});
    g.Out(g.Op("Add", {g.Op("Mul", {n, g.Weight({48})}), g.Weight({48})}));
    cases.push_back(FusionCase("layernorm in primitives", g));
  }
  {
    G g;
    g.Out(g.Op("InstanceNormalization", {g.In({2, 6, 5, 7}), g.Weight({6}), g.Weight({6})}));
    cases.push_back(FusionCase("instance norm", g));
  }
  {
    G g;
    const V x = g.In({2, 24, 5, 7});
    const V positive = g.Const(Tensor::From<double>(DType::kF32, {24}, std::vector<double>(24, 0.7)));
    g.Out(g.Op("BatchNormalization", {x, g.Weight({24}), g.Weight({24}), g.Weight({24}), positive}));
    cases.push_back(FusionCase("batch norm", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenNan, SpreadsWhereOnnxSaysSo) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  std::vector<double> values(3 * 37);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 11 == 3 ? nan : i % 13 == 5 ? -inf : i % 17 == 6 ? inf : std::sin(static_cast<double>(i));
  const Tensor data = Tensor::From<double>(DType::kF32, {3, 37}, values);
  std::vector<FusionCase> cases;
  for (const char* op : {"Relu", "Abs", "Sign", "Exp", "Erf", "Tanh", "Sigmoid", "Log", "Sqrt", "Floor", "IsNaN",
                         "IsInf", "Clip", "Neg", "LeakyRelu"}) {
    G g;
    const V x = g.In(data);
    if (std::string(op) == "Clip") {
      g.Out(g.Op(op, {x, g.Scalar(-0.5), g.Scalar(0.5)}));
    } else {
      g.Out(g.Op(op, {x}));
    }
    cases.push_back(FusionCase(std::string("nan ") + op, g));
  }
  for (const char* op : {"Max", "Min"}) {
    G g;
    const V x = g.In(data), y = g.In({3, 37});
    g.Out(g.Op(op, {x, y}));
    g.Out(g.Op(op, {y, x}));
    g.Out(g.Op(op, {g.Scalar(0.25), x}));
    cases.push_back(FusionCase(std::string("nan ") + op, g));
  }
  for (const char* op : {"ReduceMax", "ReduceMin"}) {
    for (int64_t axis : {0, 1}) {
      G g;
      g.Out(g.Op(op, {g.In(data), g.Ints({axis})}));
      cases.push_back(FusionCase(std::string("nan ") + op + ShapeToString({axis}), g));
    }
  }
  {
    G g;
    const V x = g.Op("Reshape", {g.In(data), g.Ints({1, 3, 37, 1})});
    g.Out(g.Op("MaxPool", {x}, {{"kernel_shape", Ints{3, 1}}, {"pads", Ints{1, 0, 1, 0}}}));
    cases.push_back(FusionCase("nan MaxPool", g));
  }
  for (const int64_t type : {2, 3, 4, 5}) {  // u8, i8, u16, i16
    G g;
    const V zero_point = g.Op("Cast", {g.Scalar(3)}, {{"to", type}});
    g.Out(g.Op("QuantizeLinear", {g.In(data), g.Scalar(0.01), zero_point}));
    cases.push_back(FusionCase("nan QuantizeLinear to " + std::to_string(type), g));
  }
  // Row i has its NaN at place i, in every lane of every vector and behind the last one.
  std::vector<float> one_each(40 * 39, -1.f);
  for (int64_t i = 0; i < 39; ++i) one_each[i * 39 + i] = static_cast<float>(nan);
  for (const char* op : {"ReduceMax", "ReduceMin", "Softmax"}) {
    G g;
    const V x = g.In(Tensor::From<float>(DType::kF32, {40, 39}, one_each));
    g.Out(op == std::string("Softmax") ? g.Op(op, {x}) : g.Op(op, {x, g.Ints({1})}));
    cases.push_back(FusionCase(std::string("one nan a row ") + op, g));
  }
  {
    G g;  // the zero weights of a padded reduction must not meet neighbouring NaN
    const V x = g.In(data);
    g.Out(g.Op("MatMul", {x, g.Weight({37, 20})}));
    cases.push_back(FusionCase("nan MatMul", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenStitch, OneKernelOnePhase) {
  std::vector<FusionCase> cases;
  {
    G g;
    g.Out(Gelu(&g, g.In({128, 768})));
    cases.push_back(FusionCase("gelu", g));
  }
  {
    G g;
    g.Out(LayerNorm(&g, g.In({128, 768}), 768));
    cases.push_back(FusionCase("layernorm", g));
  }
  {
    G g;
    g.Out(g.Op("Softmax", {g.In({12, 128, 128})}, {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("softmax", g));
  }
  for (const FusionResult& result : RunCases(cases, {{Avx512Device(), LayoutMode::kPlain, false}})) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    ASSERT_EQ(result.kernels.size(), 1u) << result.name;
    EXPECT_EQ(result.kernels[0].kernel.phases.size(), 1u) << result.name;
    for (const movement::Step& step : result.kernels[0].kernel.phases[0].steps) {
      EXPECT_FALSE(step.Is<movement::ScalarLoops>()) << result.name << "\n"
                                                     << movement::Print(result.kernels[0].kernel);
    }
  }
}

}  // namespace
}  // namespace fusion::testing
