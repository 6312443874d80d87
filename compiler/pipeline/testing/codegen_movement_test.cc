// Operators that only move elements, alone and at the edges of a computation.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/expression.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/simplify/passes.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

TEST(CodegenMovement, Permutations) {
  std::vector<FusionCase> cases;
  for (const Ints& perm : std::vector<Ints>{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}}) {
    G g;
    g.Out(g.Op("Transpose", {g.Op("Relu", {g.In({5, 20, 33})})}, {{"perm", perm}}));
    cases.push_back(FusionCase("Transpose" + ShapeToString(perm), g));
  }
  {
    G g;
    g.Out(g.Op("Reshape", {g.In({6, 20, 4}), g.Ints({8, -1})}));
    cases.push_back(FusionCase("Reshape", g));
  }
  {
    G g;
    g.Out(g.Op("DepthToSpace", {g.In({1, 16, 3, 5})}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}));
    g.Out(g.Op("SpaceToDepth", {g.In({1, 4, 6, 10})}, {{"blocksize", int64_t{2}}}));
    cases.push_back(FusionCase("depth and space", g));
  }
  {
    G g;
    g.Out(g.Op("Unsqueeze", {g.Op("Squeeze", {g.In({1, 7, 1, 20}), g.Ints({0, 2})}), g.Ints({1})}));
    cases.push_back(FusionCase("squeeze", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// A table of embeddings is also a product's right operand, so its rows are gathered from the product's panels.
TEST(CodegenMovement, RowsOfATableThatIsPackedForAProduct) {
  std::vector<FusionCase> cases;
  const auto add_case = [&](int64_t rows, int64_t width, bool norm) {
    G g;
    const V table = g.Weight({rows, width});
    const V ids = g.In(Tensor::From<int64_t>(DType::kI64, {1, 6}, {0, rows - 1, -1, 17, 17, -rows}));
    const V sum = g.Op("Add", {g.Op("Gather", {table, ids}), g.Weight({width})});
    g.Out(norm ? g.Op("LayerNormalization", {sum, g.Weight({width})}) : sum);
    g.Out(g.Op("MatMul", {g.In({40, width}), g.Op("Transpose", {table}, {{"perm", Ints{1, 0}}})}));
    cases.push_back(FusionCase(absl::StrCat("table of ", rows, " by ", width, norm ? " before a norm" : ""), g));
  };
  for (const int64_t rows : {96, 101}) {  // whole panels, and a panel with zeros behind the last row
    for (const int64_t width : {48, 37}) add_case(rows, width, false);
    for (const int64_t width : {144, 150}) add_case(rows, width, true);  // sums along rows, with a rest
  }
  std::vector<RunOptions> options;
  for (const DeviceModel& device : {Avx512Device(), Avx2Device()}) {
    options.push_back({device});
    options.back().hold_once = true;
  }
  for (const FusionResult& result : RunCases(cases, options)) {
    EXPECT_TRUE(result.status.ok()) << result.name << ": " << result.status;
    int reads = 0;
    for (const FusionKernel& kernel : result.kernels) {
      for (const KernelArg& arg : kernel.args) {
        if (arg.kind != KernelArg::Kind::kConstant || arg.value != 0) continue;
        ++reads;
        EXPECT_GE(arg.pack, 0) << result.name;
      }
    }
    EXPECT_EQ(reads, 2) << result.name;
  }
}

// Elements a few apart become a vector, the last ones of a row and of the operand too.
TEST(CodegenMovement, SteppedRows) {
  std::vector<FusionCase> cases;
  for (int64_t step = 2; step <= 9; ++step) {
    for (const int64_t rows : {17, 32, 2003}) {
      G g;
      g.Out(g.Op("Transpose", {g.In({rows, step})}, {{"perm", Ints{1, 0}}}));
      g.Out(g.Op("Exp", {g.Op("Slice", {g.In({3, rows * step - 1}), g.Ints({1}), g.Ints({rows * step - 1}), g.Ints({1}),
                                        g.Ints({step})})}));
      cases.push_back(FusionCase(absl::StrCat("every ", step, ". of ", rows), g));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

// The last vector of a row overlaps the one before.
TEST(CodegenMovement, RowsThatAreNoWholeVectors) {
  std::vector<FusionCase> cases;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kU8, DType::kI32}) {
    for (const int64_t width : {15, 16, 17, 28, 33}) {
      G g;
      const std::vector<V> halves = g.Ops("Split", {g.In({5, 2 * width}, dtype)}, {{"axis", int64_t{1}}}, 2);
      for (const V half : halves) g.Out(half);
      g.Out(g.Op("Pad", {g.In({4, width}, dtype), g.Ints({1, 0, 2, 0})}));
      cases.push_back(FusionCase(absl::StrCat("rows of ", width, " ", DTypeName(dtype)), g));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

// Loads run along one axis, stores along another: blocked transposes in registers, and the remainders of both axes.
TEST(CodegenMovement, Transposed) {
  std::vector<FusionCase> cases;
  for (const Shape& shape : std::vector<Shape>{{32, 48}, {37, 50}, {16, 21}, {700, 90}}) {
    G g;
    g.Out(g.Op("Transpose", {g.In(shape)}, {{"perm", Ints{1, 0}}}));
    cases.push_back(FusionCase("Transpose" + ShapeToString(shape), g));
  }
  // The channels of a picture, separate and interleaved.
  for (const int64_t channels : {2, 3, 4}) {
    for (const int64_t points : {15, 16, 61, 400}) {
      G g;
      g.Out(g.Op("Transpose", {g.In({2, points, channels})}, {{"perm", Ints{0, 2, 1}}}));
      g.Out(g.Op("Transpose", {g.In({2, channels, points})}, {{"perm", Ints{0, 2, 1}}}));
      cases.push_back(FusionCase(absl::StrCat(channels, " channels of ", points), g));
    }
  }
  // Elements of other widths move as bits, at least 16 bytes at a time.
  for (const DType dtype : {DType::kU8, DType::kI8, DType::kBool, DType::kF16, DType::kBF16, DType::kI16, DType::kU16,
                            DType::kI32, DType::kU32, DType::kI64}) {
    for (const Shape& shape : std::vector<Shape>{{37, 50}, {2, 600, 1000}}) {
      const bool large = shape.size() == 3;
      if (large && dtype != DType::kU8 && dtype != DType::kF16) continue;
      G g;
      g.Out(g.Op("Transpose", {g.In(shape, dtype)}, {{"perm", large ? Ints{0, 2, 1} : Ints{1, 0}}}));
      cases.push_back(FusionCase(absl::StrCat("Transpose", ShapeToString(shape), DTypeName(dtype)), g));
    }
  }
  {
    G g;
    const V turned = g.Op("Transpose", {g.In({3, 40, 34})}, {{"perm", Ints{0, 2, 1}}});
    g.Out(g.Op("Relu", {g.Op("Add", {g.Op("Mul", {turned, g.In({34, 40})}), g.In({34, 1})})}));
    cases.push_back(FusionCase("with arithmetic", g));
  }
  {
    G g;
    const V x = g.In({40, 33});
    const Ints perm = {1, 0};
    const V sum = g.Op("Add", {g.Op("Transpose", {x}, {{"perm", perm}}),
                               g.Op("Transpose", {g.Op("Exp", {g.In({40, 33})})}, {{"perm", perm}})});
    g.Out(sum);
    cases.push_back(FusionCase("twice", g));
  }
  for (int64_t keys : {49, 64}) {  // keys become lanes; the last panel of the last head extends past the end
    G g;
    const Ints heads = {keys, 3, 32};
    const V q = g.Op("Transpose", {g.Op("Reshape", {g.In({keys, 96}), g.Ints(heads)})}, {{"perm", Ints{1, 0, 2}}});
    const V k = g.Op("Transpose", {g.Op("Reshape", {g.In({keys, 96}), g.Ints(heads)})}, {{"perm", Ints{1, 2, 0}}});
    g.Out(g.Op("MatMul", {q, k}));
    cases.push_back(FusionCase(absl::StrCat("scores of ", keys), g));
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenMovement, Parts) {
  std::vector<FusionCase> cases;
  for (int64_t axis : {0, 1, 2}) {
    G g;
    Shape a = {3, 16, 20}, b = a, c = a;
    b[axis] = 5, c[axis] = 1;
    g.Out(g.Op("Concat", {g.Op("Relu", {g.In(a)}), g.In(b), g.Op("Exp", {g.In(c)})}, {{"axis", axis}}));
    cases.push_back(FusionCase("Concat" + ShapeToString({axis}), g));
  }
  {
    G g;
    g.Out(g.Op("Concat", {g.In({2, 32, 3, 3}), g.In({2, 16, 3, 3}), g.In({2, 16, 3, 3})}, {{"axis", int64_t{1}}}));
    cases.push_back(FusionCase("Concat of whole vectors", g));
  }
  {
    G g;
    const V x = g.Op("Relu", {g.In({4, 30, 20})});
    g.Out(g.Op("Slice", {x, g.Ints({1, 0}), g.Ints({4, 30}), g.Ints({0, 1}), g.Ints({1, 3})}));
    g.Out(g.Op("Slice", {x, g.Ints({-1}), g.Ints({-100}), g.Ints({2}), g.Ints({-1})}));
    cases.push_back(FusionCase("Slice", g));
  }
  {
    G g;
    const V x = g.Op("Relu", {g.In({4, 48, 20})});
    for (V v : g.Ops("Split", {x, g.Ints({16, 20, 12})}, {{"axis", int64_t{1}}}, 3)) g.Out(v);
    cases.push_back(FusionCase("Split", g));
  }
  for (const char* mode : {"constant", "reflect", "edge"}) {
    G g;
    g.Out(g.Op("Pad", {g.Op("Relu", {g.In({2, 5, 20})}), g.Ints({0, 1, 2, 0, 2, 3}), g.Scalar(1.5)},
               {{"mode", std::string(mode)}}));
    cases.push_back(FusionCase(std::string("Pad ") + mode, g));
  }
  // Borders beside rows of several vectors, alone; a crop on one side; a border that repeats more than the row has.
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    for (const Ints& pads : std::vector<Ints>{{0, 1, 3, 0, 1, 3}, {0, 0, -2, 0, 0, 5}, {1, 0, 40, 0, 0, 41}}) {
      for (const DType dtype : {DType::kF32, DType::kU8}) {
        G g;
        g.Out(g.Op("Pad", {g.In({3, 5, 75}, dtype), g.Ints(pads)}, {{"mode", std::string(mode)}}));
        cases.push_back(FusionCase(absl::StrCat("Pad ", mode, ShapeToString(pads), DTypeName(dtype)), g));
      }
    }
  }
  {
    G g;
    g.Out(g.Op("Expand", {g.In({1, 5, 1}), g.Ints({3, 1, 20})}));
    g.Out(g.Op("Tile", {g.In({2, 5}), g.Ints({2, 3})}));
    cases.push_back(FusionCase("Expand", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Slices of an image of `channels` × `extent` × `extent`, `step` apart, which begin at each of these rows and columns;
// stacked where they have an axis of their own.
struct Slices {
  int64_t channels, extent, step;
  std::vector<int64_t> rows, columns;
  bool stacked;
};

V PutTogether(G* g, V x, const Slices& of, int64_t size) {
  std::vector<V> pieces;
  for (const int64_t row : of.rows) {
    for (const int64_t column : of.columns) {
      const Ints begin = {row, column}, end = {row + (size - 1) * of.step + 1, column + (size - 1) * of.step + 1};
      const V piece = g->Op("Slice", {x, g->Ints(begin), g->Ints(end), g->Ints({2, 3}), g->Ints({of.step, of.step})});
      pieces.push_back(of.stacked ? g->Op("Unsqueeze", {piece, g->Ints({2})}) : piece);
    }
  }
  return g->Op("Concat", pieces, {{"axis", int64_t{of.stacked ? 2 : 1}}});
}

TEST(CodegenMovement, SlicesThatAreOneRead) {
  std::vector<FusionCase> cases;
  const std::vector<Slices> kinds = {
      {3, 16, 2, {0, 1}, {0, 1}, false},         // every second row and column
      {16, 9, 1, {0, 1, 2}, {0, 1, 2}, true},    // the taps of a window
      {20, 23, 1, {4, 2, 0}, {1}, true},         // backwards, in one dimension
      {5, 40, 3, {0, 4}, {0, 5, 10, 15}, false}  // rows and columns that overlap
  };
  for (const Slices& of : kinds) {
    const int64_t size =
        (of.extent - 1 - std::max(of.rows.front(), of.rows.back()) - std::max(of.columns.front(), of.columns.back())) /
            of.step +
        1;
    const auto pieces = static_cast<int64_t>(of.rows.size() * of.columns.size());
    for (const int form : {0, 1, 2}) {
      G g;
      const V x = g.Op("Relu", {g.In({1, of.channels, of.extent, of.extent})});
      V y = PutTogether(&g, x, of, size);
      if (form == 1 && of.stacked) {  // a window whose taps are an operand
        y = g.Op("ReduceSum", {g.Op("Mul", {y, g.In({1, 1, pieces, size, size})}), g.Ints({2})},
                 {{"keepdims", int64_t{0}}});
      }
      if (form == 1 && !of.stacked) y = g.Op("Conv", {y, g.Weight({8, of.channels * pieces, 1, 1})});
      if (form == 2) {
        y = g.Op("LayerNormalization", {y, g.Weight({size}), g.Weight({size})}, {{"axis", int64_t{-1}}});
      }
      g.Out(y);
      FusionCase one(absl::StrCat(pieces, " slices of ", size, ", form ", form), g);
      one.graph = simplify::MergeSlices(one.graph);
      EXPECT_EQ(ecg::Print(one.graph).find("Slice("), std::string::npos) << ecg::Print(one.graph);
      EXPECT_NE(ecg::Print(one.graph).find(ops::kExpression), std::string::npos) << ecg::Print(one.graph);
      cases.push_back(std::move(one));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenMovement, Indexed) {
  std::vector<FusionCase> cases;
  for (int64_t axis : {0, 1}) {
    G g;
    g.Out(g.Op("Gather", {g.In({9, 20}), g.In(Tensor::From<int64_t>(DType::kI64, {2, 3}, {0, 8, -1, 3, 2, 2}))},
               {{"axis", axis}}));
    cases.push_back(FusionCase("Gather" + ShapeToString({axis}), g));
  }
  {
    G g;  // embedding, position and layer norm
    const V words =
        g.Op("Gather", {g.Weight({30, 24}), g.In(Tensor::From<int64_t>(DType::kI64, {1, 5}, {1, 29, 0, 7, 7}))});
    g.Out(g.Op("LayerNormalization", {g.Op("Add", {words, g.Weight({5, 24})}), g.Weight({24}), g.Weight({24})},
               {{"axis", int64_t{-1}}}));
    cases.push_back(FusionCase("embedding", g));
  }
  {
    G g;  // the index is computed in the same fusion block
    const V ids = g.Op("Add", {g.In(Tensor::From<int64_t>(DType::kI64, {4}, {0, 1, 2, 3})), g.Scalar(2, DType::kI64)});
    g.Out(g.Op("Gather", {g.In({9, 20}), ids}));
    cases.push_back(FusionCase("computed index", g));
  }
  {
    G g;
    g.Out(g.Op("GatherElements", {g.In({4, 9}), g.In({4, 5}, DType::kI64)}, {{"axis", int64_t{1}}}));
    g.Out(g.Op("OneHot", {g.In({5}, DType::kI64), g.Scalar(6, DType::kI64),
                          g.Const(Tensor::From<double>(DType::kF32, {2}, {0, 1}))}));
    cases.push_back(FusionCase("elements", g));
  }
  {
    G g;
    const V ids = g.In(Tensor::From<int64_t>(DType::kI64, {2, 1}, {3, 1}));
    g.Out(g.Op("ScatterND", {g.In({5, 20}), ids, g.In({2, 20})}));
    cases.push_back(FusionCase("ScatterND", g));
  }
  {
    G g;
    g.Out(g.Op("Trilu", {g.In({7, 20})}, {{"upper", int64_t{0}}}));
    cases.push_back(FusionCase("Trilu", g));
  }
  EXPECT_EQ(Failures(cases), "");
}

// Channels that share the places of their taps stand beside each other where they come in fours.
TEST(CodegenMovement, InterpolatedAtPlacesOfData) {
  std::vector<FusionCase> cases;
  for (const int64_t channels : {3, 4, 12}) {
    for (const char* mode : {"nearest", "linear", "cubic"}) {
      for (const char* padding : {"zeros", "border", "reflection"}) {
        G g;
        const V x = g.In({2, channels, 6, 5}), grid = g.In({2, 3, 7, 2});
        const V y = g.Op("GridSample", {x, grid}, {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}});
        g.Out(g.Op("Relu", {g.Op("Add", {y, g.In({channels, 1, 1})})}));
        cases.push_back(FusionCase(absl::StrCat(mode, " ", padding, " of ", channels), g));
      }
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

TEST(CodegenMovement, Resize) {
  std::vector<FusionCase> cases;
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const char* coordinates : {"asymmetric", "align_corners", "half_pixel"}) {
      G g;
      g.Out(g.Op("Resize", {g.In({1, 5, 6, 7}), ecg::kNone, ecg::kNone, g.Ints({1, 5, 9, 20})},
                 {{"mode", std::string(mode)}, {"coordinate_transformation_mode", std::string(coordinates)}}));
      cases.push_back(FusionCase(std::string("Resize ") + mode + " " + coordinates, g));
    }
  }
  EXPECT_EQ(Failures(cases), "");
}

}  // namespace
}  // namespace fusion::testing
