#include "compiler/launch/elide_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using G = testing::GraphMaker;
using V = ecg::ValueId;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kAxis0 = 0, kAxis1 = 1;

ElidedCopies Elided(const G& g) { return ElideCopies(g.graph(), testing::KernelOfEachNode(g.graph())); }

V Made(G* g, const Shape& shape) { return g->Op("Relu", {g->In(shape)}); }

TEST(ElideCopies, PartsStandInTheirConcat) {
  G g;
  const V a = Made(&g, {1, 64, 28, 28}), b = Made(&g, {1, 96, 28, 28});  // each in several tasks, the last one shorter
  const V c = g.Op("Concat", {a, b}, {{"axis", kAxis1}});
  g.Out(g.Op("Exp", {c}));
  const ElidedCopies elided = Elided(g);
  EXPECT_THAT(elided.fusion_blocks, ElementsAre(2));
  ASSERT_EQ(elided.values.size(), 2u);
  EXPECT_EQ(elided.values.at(a).whole, c);
  EXPECT_EQ(elided.values.at(a).offset_bytes, 0);
  EXPECT_EQ(elided.values.at(b).whole, c);
  EXPECT_EQ(elided.values.at(b).offset_bytes, 4 * 64 * 28 * 28);
}

TEST(ElideCopies, ConcatOfConcats) {
  G g;
  const V a = Made(&g, {64, 32}), b = Made(&g, {64, 32}), c = Made(&g, {64, 32});
  const V inner = g.Op("Concat", {a, b}, {{"axis", kAxis0}});
  const V outer = g.Op("Concat", {c, inner}, {{"axis", kAxis0}});
  g.Out(g.Op("Exp", {outer}));
  const ElidedCopies elided = Elided(g);
  EXPECT_THAT(elided.fusion_blocks, ElementsAre(3, 4));
  EXPECT_EQ(elided.values.at(b).whole, inner);
  EXPECT_EQ(elided.values.at(inner).whole, outer);
  EXPECT_EQ(elided.values.at(inner).offset_bytes, 4 * 64 * 32);
}

TEST(ElideCopies, ASliceStandsInItsOperand) {
  G g;
  const V a = Made(&g, {64, 32});
  const V rows = g.Op("Slice", {a, g.Ints({16}), g.Ints({48}), g.Ints({0})});
  const V shaped = g.Op("Reshape", {rows, g.Ints({32, 4, 8})});
  g.Out(g.Op("Exp", {shaped}));
  g.Out(g.Op("Neg", {a}));
  const ElidedCopies elided = Elided(g);
  EXPECT_THAT(elided.fusion_blocks, ElementsAre(1, 2));
  EXPECT_EQ(elided.values.at(rows).whole, a);
  EXPECT_EQ(elided.values.at(rows).offset_bytes, 4 * 16 * 32);
  EXPECT_EQ(elided.values.at(shaped).whole, rows);
}

// These copies stay: columns are no contiguous runs; an input, an output or a constant has memory of its own; no value
// can be in two places; vectors must begin on cache lines.
TEST(ElideCopies, WhatStaysACopy) {
  const auto concat = [](const std::function<std::vector<V>(G*)>& parts, int64_t axis, bool out = false) {
    G g;
    const V c = g.Op("Concat", parts(&g), {{"axis", axis}});
    g.Out(out ? c : g.Op("Exp", {c}));
    return Elided(g).fusion_blocks;
  };
  const Shape shape = {32, 48};
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, shape), Made(g, shape)}; }, kAxis1), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, shape), g->In(shape)}; }, kAxis0), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, shape), g->Weight(shape)}; }, kAxis0), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, shape), Made(g, shape)}; }, kAxis0, true), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector(2, Made(g, shape)); }, kAxis0), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, {31, 47}), Made(g, {32, 47})}; }, kAxis0), IsEmpty());
  EXPECT_THAT(concat([&](G* g) { return std::vector{Made(g, shape), Made(g, shape)}; }, kAxis0), ElementsAre(2));

  G g;
  const V a = Made(&g, shape), b = Made(&g, shape), c = Made(&g, shape);
  g.Out(g.Op("Exp", {g.Op("Concat", {a, b}, {{"axis", kAxis0}})}));
  g.Out(g.Op("Exp", {g.Op("Concat", {b, c}, {{"axis", kAxis0}})}));
  EXPECT_THAT(Elided(g).fusion_blocks, ElementsAre(3));
}

}  // namespace
}  // namespace fusion
