#include "compiler/choose_layouts/choose_layouts.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

V Conv(G* g, V x, int64_t from, int64_t to, int64_t k) {
  return g->Op("Conv", {x, g->Weight({to, from, k, k})}, {{"pads", Ints(4, k / 2)}});
}

std::set<V> Blocked(const G& g) {
  const DeviceModel device;
  ValueLayouts layouts = ChooseLayouts(g.graph(), device, 1).value();
  std::set<V> blocked;
  for (const auto& [v, layout] : layouts) {
    if (layout.plain()) continue;
    EXPECT_EQ(layout, (Layout{1, 16}));
    blocked.insert(v);
  }
  return blocked;
}

// Adds an output that is plain and unrelated to the layout of every image.
void OutMean(G* g, V x, int64_t channels) {
  g->Out(g->Op("MatMul", {g->Op("Flatten", {g->Op("GlobalAveragePool", {x})}), g->Weight({channels, 5})}));
}

TEST(ChooseLayouts, ResidualNetworkAgrees) {
  G g;
  const V x = g.In({1, 3, 8, 8});
  const V a = Conv(&g, x, 3, 32, 3), b = g.Op("Relu", {a}), c = Conv(&g, b, 32, 32, 3), d = g.Op("Add", {c, b});
  const V e = g.Op("MaxPool", {d}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  OutMean(&g, e, 32);
  const std::set<V> blocked = Blocked(g);
  for (V v : {a, b, c, d, e}) EXPECT_TRUE(blocked.count(v)) << v;
  EXPECT_FALSE(blocked.count(x));
}

// A pooling that counts positions too writes both in one expression, and i64 has no lanes.
TEST(ChooseLayouts, OutputsOfOneExpressionHaveOneLayout) {
  G g;
  const V a = Conv(&g, g.In({1, 3, 8, 8}), 3, 32, 3);
  const std::vector<V> pooled = g.Ops("MaxPool", {a}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, 2);
  OutMean(&g, pooled[0], 32);
  g.Out(pooled[1]);
  const std::set<V> blocked = Blocked(g);
  EXPECT_FALSE(blocked.count(pooled[0]));
  EXPECT_FALSE(blocked.count(pooled[1]));
}

TEST(ChooseLayouts, InputsAndOutputsArePlain) {
  G g;
  const V x = g.In({1, 32, 8, 8});
  const V a = Conv(&g, x, 32, 32, 3);
  g.Out(g.Op("Relu", {a}));
  const std::set<V> blocked = Blocked(g);
  EXPECT_TRUE(blocked.empty());
}

TEST(ChooseLayouts, ChannelsThatFillNoVectorAreBlockedToo) {
  G g;
  const V a = Conv(&g, g.In({1, 3, 8, 8}), 3, 24, 3), b = g.Op("Relu", {a});
  OutMean(&g, b, 24);
  EXPECT_TRUE(Blocked(g).count(a));
}

TEST(ChooseLayouts, FewChannelsStayPlain) {
  G g;
  const V a = Conv(&g, g.In({1, 3, 8, 8}), 3, 4, 3);
  OutMean(&g, a, 4);
  EXPECT_FALSE(Blocked(g).count(a));
}

TEST(ChooseLayouts, JoinOfChannels) {
  for (int64_t first : {16, 12}) {
    G g;
    const V x = g.Op("Relu", {Conv(&g, g.In({1, 3, 8, 8}), 3, 16, 3)});
    const V a = Conv(&g, x, 16, first, 1), b = Conv(&g, x, 16, 32, 3);
    const V joined = g.Op("Concat", {a, b}, {{"axis", int64_t{1}}});
    OutMean(&g, joined, first + 32);
    const std::set<V> blocked = Blocked(g);
    // Parts that start inside a vector veto the blocked layout of the joined value.
    EXPECT_EQ(blocked.count(joined), first % 16 == 0 ? 1u : 0u) << first;
    EXPECT_TRUE(blocked.count(x)) << first;
  }
}

TEST(ChooseLayouts, ShuffledChannelsAreCopiedPlain) {
  G g;
  const V a = Conv(&g, g.In({1, 3, 4, 4}), 3, 32, 3);
  const V split = g.Op("Reshape", {a, g.Ints({1, 2, 16, 4, 4})});
  const V turned = g.Op("Transpose", {split}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  const V back = g.Op("Reshape", {turned, g.Ints({1, 32, 4, 4})});
  OutMean(&g, Conv(&g, back, 32, 32, 1), 32);
  const std::set<V> blocked = Blocked(g);
  EXPECT_FALSE(blocked.count(turned));
}

// A Concat whose second part begins inside a vector, so that votes leave its layout open.
TEST(ChooseLayouts, ContestedChannelsMayLieLast) {
  constexpr int64_t kChannels = 232, kSide = 7;
  G g;
  const V x = g.Op("Relu", {Conv(&g, g.In({1, 3, kSide, kSide}), 3, kChannels, 3)});
  const V a = Conv(&g, x, kChannels, kChannels, 1), b = Conv(&g, x, kChannels, kChannels, 1);
  const V joined = g.Op("Concat", {g.Op("Relu", {b}), g.Op("Relu", {a})}, {{"axis", int64_t{1}}});
  const V split = g.Op("Reshape", {joined, g.Ints({1, 2, kChannels, kSide, kSide})});
  const V turned = g.Op("Transpose", {split}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  const V back = g.Op("Reshape", {turned, g.Ints({1, 2 * kChannels, kSide, kSide})});
  OutMean(&g, Conv(&g, back, 2 * kChannels, 32, 1), 32);
  const absl::StatusOr<ValueLayouts> layouts = ChooseLayouts(g.graph(), DeviceModel(), 1);
  ASSERT_TRUE(layouts.ok()) << layouts.status();
  ASSERT_TRUE(layouts->count(b));
  EXPECT_TRUE(layouts->at(b).axis_last()) << layouts->at(b).ToString(4);
}

// Vectors of channels pay for the transpositions, which read and write whole vectors then, and which memory hides. Four
// channels fill no vector.
TEST(ChooseLayouts, ADepthwiseConvolutionIsBlockedWhereThatPays) {
  const auto between_transpositions = [](int64_t channels, int64_t stride) {
    G g;
    const V x = g.Op("Transpose", {g.In({1, 28, 28, channels})}, {{"perm", Ints{0, 3, 1, 2}}});
    const V a = g.Op("Conv", {x, g.Weight({channels, 1, 3, 3})},
                     {{"pads", Ints(4, 1)}, {"strides", Ints(2, stride)}, {"group", channels}});
    g.Out(g.Op("Transpose", {a}, {{"perm", Ints{0, 2, 3, 1}}}));
    return std::pair(a, Blocked(g));
  };
  for (const int64_t stride : {1, 2}) {
    const auto [many, blocked] = between_transpositions(64, stride);
    EXPECT_TRUE(blocked.count(many)) << stride;
  }
  EXPECT_TRUE(between_transpositions(4, 2).second.empty());
}

TEST(ChooseLayouts, AMeanThatIsAnOutputKeepsNoImagePlain) {
  G g;
  const V a = Conv(&g, g.In({1, 3, 13, 13}), 3, 64, 3), b = Conv(&g, a, 64, 1000, 1);
  const V mean = g.Op("GlobalAveragePool", {b});
  g.Out(mean);
  const std::set<V> blocked = Blocked(g);
  EXPECT_TRUE(blocked.count(b));
  EXPECT_FALSE(blocked.count(mean));
}

// With three channels a group, a layout block of 16 would hold parts of seven groups, each with channels of its own to
// read.
TEST(ChooseLayouts, GroupsThatCutBlocksAreNotBlocked) {
  const auto between = [](int64_t channels, int64_t groups) {
    G g;
    const V a = Conv(&g, g.In({1, 32, 28, 28}), 32, channels, 1);
    const V b =
        g.Op("Conv", {a, g.Weight({channels, channels / groups, 3, 3})}, {{"pads", Ints(4, 1)}, {"group", groups}});
    OutMean(&g, Conv(&g, b, channels, 32, 1), 32);
    const DeviceModel device;
    const auto layouts = ChooseLayouts(g.graph(), device, 1).value();
    const auto is_blocked = [&](V v) { return layouts.count(v) > 0 && layouts.at(v) == Layout{1, 16}; };
    EXPECT_EQ(is_blocked(a), is_blocked(b));
    return is_blocked(b);
  };
  EXPECT_FALSE(between(96, 32));
  EXPECT_FALSE(between(384, 32));
  EXPECT_TRUE(between(512, 32));  // each layout block lies in one group
}

TEST(ChooseLayouts, ACopyForADotProductOfBytesHasChannelsBesideEachOther) {
  for (const bool byte_dots : {true, false}) {
    G g;
    const V x = g.In({1, 64, 28, 28}, DType::kU8);
    const V padded = g.Op("Pad", {x, g.Ints({0, 0, 1, 1, 0, 0, 1, 1})});
    g.Out(g.Op("ConvInteger", {padded, g.Weight({64, 64, 3, 3}, DType::kI8)}));
    DeviceModel device;
    device.byte_dots = byte_dots;
    const absl::StatusOr<ValueLayouts> layouts = ChooseLayouts(g.graph(), device, 1);
    ASSERT_TRUE(layouts.ok()) << layouts.status();
    EXPECT_EQ(layouts->count(padded), byte_dots ? 1u : 0u);
    EXPECT_EQ(layouts->count(x), 0u);
  }
}

TEST(ChooseLayouts, ProductsStayPlain) {
  G g;
  const V a = g.Op("MatMul", {g.In({2, 64, 32}), g.Weight({32, 64})});
  const V b = g.Op("MatMul", {g.Op("Relu", {a}), g.Weight({64, 32})});
  g.Out(g.Op("Softmax", {b}, {{"axis", int64_t{-1}}}));
  EXPECT_TRUE(Blocked(g).empty());
}

}  // namespace
}  // namespace fusion
