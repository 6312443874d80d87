#include "compiler/ops/control/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/control/unroll_loops.h"

namespace fusion::ecg {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Graph Parsed(const std::string& text) {
  auto graph = Parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return std::move(graph).value();
}

// h' = tanh(h + x·w) over three steps from the end; w·2 does not depend on the step.
constexpr char kRecurrence[] = R"(graph g(%h0: f32[2], %xs: f32[3, 2], %w: f32[2]) {
  %h: f32[2], %x: f32[2] = LoopBegin(%h0, %xs) {carried = 1, loop = 7, reversed = ints[1], trips = 3}
  %w2: f32[2] = Add(%w, %w)
  %xw: f32[2] = Mul(%x, %w2)
  %s: f32[2] = Add(%h, %xw)
  %next: f32[2] = Tanh(%s)
  %last: f32[2], %all: f32[3, 2] = LoopEnd(%h, %next, %next) {carried = 1, loop = 7, reversed = ints[0], trips = 3}
  return %last, %all
})";

TEST(FindLoops, ANodeRunsInTheLoopItDependsOn) {
  const auto loops = FindLoops(Parsed(kRecurrence));
  ASSERT_TRUE(loops.ok()) << loops.status();
  ASSERT_EQ(loops->list.size(), 1u);
  EXPECT_EQ(loops->list[0].begin, 0);
  EXPECT_EQ(loops->list[0].end, 5);
  EXPECT_EQ(loops->list[0].trips, 3);
  EXPECT_THAT(loops->of_node, ElementsAre(Loops::kBoundary, Loops::kOnce, 0, 0, 0, Loops::kBoundary));
  EXPECT_EQ(loops->Trips(1), 1);
  EXPECT_EQ(loops->Trips(2), 3);
}

TEST(FindLoops, RefusesWhatIsNoLoop) {
  const auto why = [](const std::string& text) { return std::string(FindLoops(Parsed(text)).status().message()); };
  EXPECT_THAT(why(R"(graph g(%xs: f32[3, 2]) {
  %x: f32[2] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[2] = Tanh(%x)
  return %y
})"),
              HasSubstr("output 'y' is computed within a loop"));
  EXPECT_THAT(why(R"(graph g(%xs: f32[3, 2, 2]) {
  %x: f32[2, 2] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %z: f32[2] = LoopBegin(%x) {carried = 0, loop = 2, reversed = ints[0], trips = 2}
  return %xs
})"),
              HasSubstr("a loop within a loop"));
  EXPECT_THAT(why(R"(graph g(%a: f32[3, 2], %b: f32[3, 2]) {
  %x: f32[2] = LoopBegin(%a) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[2] = LoopBegin(%b) {carried = 0, loop = 2, reversed = ints[0], trips = 3}
  %z: f32[2] = Add(%x, %y)
  return %a
})"),
              HasSubstr("reads values of two loops"));
  EXPECT_THAT(why(R"(graph g(%xs: f32[3, 2]) {
  %x: f32[2] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[4, 2] = LoopEnd(%x, %x) {carried = 0, loop = 1, reversed = ints[0], trips = 4}
  return %y
})"),
              HasSubstr("does not fit LoopBegin"));
}

TEST(FindLoops, ALoopWithoutEndIsDead) {
  const auto loops = FindLoops(Parsed(R"(graph g(%xs: f32[3, 2]) {
  %x: f32[2] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[2] = Tanh(%x)
  %z: f32[3, 2] = Tanh(%xs)
  return %z
})"));
  ASSERT_TRUE(loops.ok()) << loops.status();
  EXPECT_TRUE(loops->empty());
  EXPECT_THAT(loops->of_node, ElementsAre(Loops::kDead, Loops::kDead, Loops::kOnce));
}

TEST(UnrollLoops, LeavesOutLoopsWithoutEnd) {
  const auto unrolled = UnrollLoops(Parsed(R"(graph g(%xs: f32[3, 2]) {
  %x: f32[2] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[2] = Tanh(%x)
  %z: f32[2] = LoopBegin(%xs) {carried = 0, loop = 2, reversed = ints[0], trips = 3}
  %all: f32[3, 2] = LoopEnd(%z, %z) {carried = 0, loop = 2, reversed = ints[0], trips = 3}
  return %all
})"));
  ASSERT_TRUE(unrolled.ok()) << unrolled.status();
  for (const Node& node : unrolled->nodes()) {
    EXPECT_NE(node.op, "Tanh");
    for (const ValueId input : node.inputs) EXPECT_NE(input, kNone) << node.op;
  }
}

TEST(UnrollLoops, SlicesWithoutElementsKeepTheirExtents) {
  const auto unrolled = UnrollLoops(Parsed(R"(graph g(%xs: f32[3, 0]) {
  %x: f32[0] = LoopBegin(%xs) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  %y: f32[0] = Tanh(%x)
  %all: f32[3, 0] = LoopEnd(%x, %y) {carried = 0, loop = 1, reversed = ints[0], trips = 3}
  return %all
})"));
  ASSERT_TRUE(unrolled.ok()) << unrolled.status();
  int reshapes = 0;
  for (const Node& node : unrolled->nodes()) {
    if (node.op != "Reshape") continue;
    ++reshapes;
    EXPECT_EQ(node.attrs.Int("allowzero"), 1) << "an extent of 0 would be the operand's";
  }
  EXPECT_GT(reshapes, 0);
}

TEST(CheckSameLoop, NamesTheNodesThatRunDifferentlyOften) {
  const Graph graph = Parsed(kRecurrence);
  const auto loops = FindLoops(graph);
  ASSERT_TRUE(loops.ok());
  EXPECT_TRUE(CheckSameLoop(graph, *loops, {2, 3, 4}).ok());
  EXPECT_TRUE(CheckSameLoop(graph, *loops, {0}).ok());
  EXPECT_THAT(std::string(CheckSameLoop(graph, *loops, {1, 2}).message()),
              HasSubstr("Add 'w2' runs 1 times and Mul 'xw' 3 times"));
  EXPECT_EQ(CheckSameLoop(graph, *loops, {0, 3}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CheckSameLoop(graph, *loops, {4, 5}).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(UnrollLoops, IterationsFollowEachOther) {
  const auto unrolled = UnrollLoops(Parsed(kRecurrence));
  ASSERT_TRUE(unrolled.ok()) << unrolled.status();
  int tanh = 0, adds = 0, boundaries = 0;
  for (const Node& node : unrolled->nodes()) {
    tanh += node.op == "Tanh" ? 1 : 0;
    adds += node.op == "Add" ? 1 : 0;
    boundaries += ops::IsLoopBoundary(node) ? 1 : 0;
  }
  EXPECT_EQ(tanh, 3);
  EXPECT_EQ(adds, 4);  // what does not depend on the iteration is there once
  EXPECT_EQ(boundaries, 0);
  // The first iteration reads the last slice, and its result is the first part of the stack.
  const Node& concat = unrolled->node(
      unrolled->value(unrolled->node(unrolled->value(unrolled->outputs()[1]).producer).inputs[0]).producer);
  ASSERT_EQ(concat.op, "Concat");
  ASSERT_EQ(concat.inputs.size(), 3u);
  const auto producer = [&](ValueId v) -> const Node& { return unrolled->node(unrolled->value(v).producer); };
  const Node& first = producer(producer(concat.inputs[0]).inputs[0]);  // Tanh, Add
  EXPECT_EQ(first.inputs[0], unrolled->inputs()[0]);
}

}  // namespace
}  // namespace fusion::ecg
