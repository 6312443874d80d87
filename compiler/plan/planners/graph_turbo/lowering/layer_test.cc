#include "compiler/plan/planners/graph_turbo/lowering/layer.h"

#include <gtest/gtest.h>

#include "compiler/te/program/program.h"

namespace fusion::graph_turbo {
namespace {

// A layer of one program, of which the inputs at `weights` are weights.
Layer LayerOf(const std::string& text, const std::vector<int>& weights) {
  auto program = te::Parse(text);
  EXPECT_TRUE(program.ok()) << program.status().message();
  Op op{"op", AccessMap(*program), {}, {}, {}, 0};
  for (int k = 0; k < static_cast<int>(program->inputs.size()); ++k) op.inputs.push_back(k);
  for (const int k : weights) op.inputs[k] = kNone;
  return MakeLayer(op);
}

constexpr char kProduct[] = R"(te p(%0: f32[8, 32], %1: f32[32, 24], %2: f32[24]) {
  %3[i3<8, i4<24]: f32 = sum.f32(i2<32) mul(%0[i3, i2], %1[i2, i4]) then (add(acc0, %2[i4]))
  %4[i5<8, i6<24]: f32 = exp(%3[i5, i6])
  return %4
})";

TEST(MakeLayer, AProductIsTheMatrixUnitsAndTheRestTheVectorUnits) {
  const Layer layer = LayerOf(kProduct, {1, 2});
  ASSERT_EQ(layer.segments.size(), 2u);
  EXPECT_EQ(layer.segments[0].unit, SegmentUnit::kMatrix);
  // The bias and exp are one segment, which costs what exp costs.
  EXPECT_EQ(layer.segments[1].unit, SegmentUnit::kSpecial);
  EXPECT_EQ(layer.segments[1].tes.size(), 2u);
  EXPECT_EQ(layer.chunk_extent, 32);
  const std::vector<Region> tensors = layer.access.Required({WholeRegion({8, 24})}).tensors;
  EXPECT_EQ(layer.segments[0].Work(tensors), 8 * 24 * 32);
  EXPECT_GE(layer.segments[1].Work(tensors), 8 * 24);
}

TEST(MakeLayer, AProductWithoutReuseIsAVectorUnits) {
  const Layer layer = LayerOf(R"(te p(%0: f32[6, 11, 3], %1: f32[6, 3]) {
    %2[i0<6, i1<11]: f32 = sum.f32(i2<3) mul(%0[i0, i1, i2], %1[i0, i2])
    return %2
  })",
                              {1});
  ASSERT_EQ(layer.segments.size(), 1u);
  EXPECT_EQ(layer.segments[0].unit, SegmentUnit::kVector);
  EXPECT_EQ(layer.chunk_axis, -1);
}

TEST(MakeLayer, AMapThatReadsAWeightAtAddressesFromDataGathers) {
  const std::string text = R"(te p(%0: f32[100, 4], %1: i64[5]) {
    %2[i0<5, i1<4]: f32 = %0[%1[i0]{0..99}, i1]
    return %2
  })";
  const Layer layer = LayerOf(text, {0});
  ASSERT_EQ(layer.segments.size(), 1u);
  EXPECT_EQ(layer.segments[0].unit, SegmentUnit::kGather);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(layer.segments[0].table[i], layer.segments[0].in[i] == 0);
  // A table that a layer has made may be in an LB, and is.
  EXPECT_EQ(LayerOf(text, {}).segments[0].unit, SegmentUnit::kVector);
}

TEST(MakeLayer, SegmentsHandTensorsToEachOther) {
  const Layer layer = LayerOf(kProduct, {1, 2});
  EXPECT_EQ(layer.segments[0].out.size(), 1u);
  EXPECT_EQ(layer.segments[0].expression.inputs.size(), 2u);
  EXPECT_EQ(layer.segments[1].in[0], layer.segments[0].out[0]);
  for (const Segment& segment : layer.segments) EXPECT_TRUE(te::Verify(segment.expression).ok());
}

}  // namespace
}  // namespace fusion::graph_turbo
