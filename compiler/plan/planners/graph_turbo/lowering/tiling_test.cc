#include "compiler/plan/planners/graph_turbo/lowering/tiling.h"

#include <gtest/gtest.h>

#include "compiler/plan/planners/graph_turbo/testing/op_graph_from_text.h"

namespace fusion::graph_turbo {
namespace {

Layer Product(int rows, int inner, int columns) {
  const auto text = [](int a, int b) { return "f32[" + std::to_string(a) + ", " + std::to_string(b) + "]"; };
  const OpGraph graph =
      OpGraphFromText("graph g(%x: " + text(rows, inner) + ") {\n%w: " + text(inner, columns) +
                      " = const #0000000000000000\n%y: " + text(rows, columns) + " = MatMul(%x, %w)\nreturn %y\n}");
  return MakeLayer(graph.ops[0]);
}

CoreRates Rates() { return {16, 4, 1, 8, 2, 4}; }

TilingRequest RequestFor(const Layer& layer, int rows, int columns, int64_t budget) {
  TilingRequest request;
  request.layer = &layer;
  request.outputs = {WholeRegion({rows, columns})};
  request.resident = {false, false};
  request.weight = {false, true};
  request.element_bytes = 4;
  request.budget_bytes = budget;
  return request;
}

TEST(ChooseTiling, TakesTheWholeWhereItFits) {
  const Layer layer = Product(8, 16, 8);
  const Tiling tiling = ChooseTiling(RequestFor(layer, 8, 8, 4096), Rates());
  EXPECT_TRUE(tiling.fits);
  EXPECT_EQ(Pieces(tiling.factors), 1);
  EXPECT_EQ(tiling.chunks, 1);
  EXPECT_EQ(tiling.bytes, 8 * 16 * 4 + 16 * 8 * 4);
}

// The three resources: the unit takes 64 + 2 cycles, the mover 2 * (512 / 8 + 4), and DDR what follows.
TEST(ChooseTiling, CountsWhatDdrHasToServe) {
  const Layer layer = Product(8, 16, 8);
  CoreRates rates = Rates();
  rates.ddr_bytes = 2;
  rates.ddr_startup = 100;
  TilingRequest request = RequestFor(layer, 8, 8, 4096);
  EXPECT_DOUBLE_EQ(ChooseTiling(request, rates).cycles, 136 + 0.1 * 66);
  request.ddr_parts = {0, 4};  // four cores read other columns of the weight
  EXPECT_DOUBLE_EQ(ChooseTiling(request, rates).cycles, 4 * 512 / 2 + 0.1 * (136 + 66));
  request.ddr_parts.clear();
  request.outputs_have_room = false;
  request.outputs_leave = true;  // to the GB
  EXPECT_DOUBLE_EQ(ChooseTiling(request, rates).cycles, 136 + 256 / 8 + 4 + 0.1 * 66);
  request.ddr_outputs = 4;
  EXPECT_DOUBLE_EQ(ChooseTiling(request, rates).cycles, 4 * (256 / 2 + 100) + 0.1 * (136 + 66));
}

// Columns change in the outer loop, so that the rows are needed again for each part of them.
TEST(ChooseTiling, LeavesColumnsWholeWhereTheStreamForgetsTheRows) {
  const Layer layer = Product(64, 16, 64);
  CoreRates rates = Rates();
  rates.ddr_bytes = 0.01;
  TilingRequest request = RequestFor(layer, 64, 64, 1024);
  EXPECT_GT(ChooseTiling(request, rates).factors[1], 1);
  request.ddr_parts = {1, 0};
  EXPECT_EQ(ChooseTiling(request, rates).factors[1], 1);
  rates.stream_bytes = 64 * 16 * 4;
  EXPECT_GT(ChooseTiling(request, rates).factors[1], 1);
}

TEST(ChooseTiling, CutsUntilOperandsFit) {
  const Layer layer = Product(32, 16, 32);
  for (const int64_t budget : {4096, 2048, 1024, 512}) {
    const TilingRequest request = RequestFor(layer, 32, 32, budget);
    const Tiling tiling = ChooseTiling(request, Rates());
    EXPECT_TRUE(tiling.fits) << budget;
    EXPECT_LE(tiling.bytes, budget);
    int64_t elements = 0;
    for (const auto& tile : TilesOf(request.outputs, tiling)) elements += tile[0].elements();
    EXPECT_EQ(elements, 32 * 32);
  }
}

// Two of three heads reach over 32 + 8 columns of the product where a tile has 8 of each head's 32; the last head alone
// has 8.
TEST(ChooseTiling, CountsTheLargestTileWhereTheLastIsShorter) {
  const auto graph = ecg::Parse(R"(graph g(%x: f32[64, 96]) {
%w: f32[96, 96] = const #0000000000000000
%p: f32[64, 96] = MatMul(%x, %w)
%s: i64[3] = const {64, 3, 32}
%h: f32[64, 3, 32] = Reshape(%p, %s)
%y: f32[3, 64, 32] = Transpose(%h) {perm = ints[1, 0, 2]}
return %y
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto ops = MakeOpGraph(*graph, {{0, 1, 2}}, {4});
  ASSERT_TRUE(ops.ok()) << ops.status();
  const Layer layer = MakeLayer(ops->ops[0]);
  const std::vector<te::TensorId>& inputs = layer.access.program().inputs;
  for (const int64_t budget : {32768, 16384, 8192, 4096}) {
    TilingRequest request = RequestFor(layer, 64, 96, budget);
    request.outputs = {WholeRegion({3, 64, 32})};
    request.resident.assign(inputs.size(), false);
    request.weight.assign(inputs.size(), false);
    const Tiling tiling = ChooseTiling(request, Rates());
    ASSERT_TRUE(tiling.fits) << budget;
    for (const std::vector<Region>& tile : TilesOf(request.outputs, tiling)) {
      const std::vector<Region> tensors = layer.access.Required(tile, ChunkPart(layer, tiling.chunks, 0)).tensors;
      int64_t bytes = 0;
      for (const te::TensorId input : inputs) bytes += tensors[input].elements() * request.element_bytes;
      EXPECT_LE(bytes, budget);
      EXPECT_LE(static_cast<double>(bytes), tiling.bytes);
    }
  }
}

TEST(ChooseTiling, TakesLongSumsInParts) {
  const Layer layer = Product(1, 4096, 2);
  const Tiling tiling = ChooseTiling(RequestFor(layer, 1, 2, 4096), Rates());
  EXPECT_TRUE(tiling.fits);
  EXPECT_GT(tiling.chunks, 1);
  int64_t covered = 0;
  for (int64_t chunk = 0; chunk < tiling.chunks; ++chunk) {
    covered += ChunkPart(layer, tiling.chunks, chunk).range.length();
  }
  EXPECT_EQ(covered, 4096);
}

TEST(ChooseTiling, SaysWhereNothingFits) {
  const Layer layer = Product(1, 4, 1);
  EXPECT_FALSE(ChooseTiling(RequestFor(layer, 1, 1, 16), Rates()).fits);
}

TEST(ChooseTiling, WeightsChangeInTheOuterLoop) {
  const Layer layer = Product(64, 16, 64);
  const Tiling tiling = ChooseTiling(RequestFor(layer, 64, 64, 1024), Rates());
  ASSERT_EQ(tiling.loops.size(), 2u);
  EXPECT_EQ(tiling.loops[0], 1);  // columns
}

TEST(ChooseBinding, DistributesWhatNeedsTheLeast) {
  const Layer layer = Product(8, 64, 512);
  // With all weights far away, each core takes columns of its own.
  const auto weights = [&](int, const AccessMap::Needs& needs) {
    return 4.0 * static_cast<double>(needs.inputs[1].elements());
  };
  EXPECT_EQ(ChooseBinding(layer, {WholeRegion({8, 512})}, 4, Rates(), weights), (Factors{1, 4}));
  const auto rows = [&](int, const AccessMap::Needs& needs) {
    return 400.0 * static_cast<double>(needs.inputs[0].elements());
  };
  EXPECT_EQ(ChooseBinding(layer, {WholeRegion({8, 512})}, 4, Rates(), rows), (Factors{4, 1}));
}

TEST(CutOutputs, LeavesOutWhatCannotBeCutAlike) {
  EXPECT_EQ(CutOutputs({WholeRegion({4, 6}), WholeRegion({4, 3})}, {2, 1}).size(), 2u);
  EXPECT_TRUE(CutOutputs({WholeRegion({4, 6}), WholeRegion({4, 3})}, {1, 2}).empty());
}

}  // namespace
}  // namespace fusion::graph_turbo
