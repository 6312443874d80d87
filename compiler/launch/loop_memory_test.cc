#include "compiler/launch/loop_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/simplify/passes.h"

namespace fusion {
namespace {

using ::testing::UnorderedElementsAre;

// Two states, of which the first is stacked; a slice; a stack of its own.
ecg::Graph Recurrence(bool reversed) {
  const std::string way = reversed ? "1" : "0";
  auto graph = ecg::Parse(absl::StrCat(R"(graph g(%h0: f32[5], %c0: f32[5], %given: f32[4, 5]) {
  %xs: f32[4, 5] = Tanh(%given)
  %h: f32[5], %c: f32[5], %x: f32[5] = LoopBegin(%h0, %c0, %xs) {carried = 2, loop = 1, reversed = ints[)",
                                       way, R"(], trips = 4}
  %c1: f32[5] = Add(%c, %x)
  %h1: f32[5] = Mul(%h, %c1)
  %y: f32[5] = Tanh(%h1)
  %hl: f32[5], %cl: f32[5], %hs: f32[4, 5], %ys: f32[4, 5] = LoopEnd(%h, %c1, %h1, %h1, %y) {carried = 2, loop = 1, reversed = ints[)",
                                       way, ", ", way, R"(], trips = 4}
  %a: f32[4, 5] = Add(%hs, %ys)
  %b: f32[5] = Add(%hl, %cl)
  return %a, %b
})"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto separated = simplify::SeparateLoopValues(graph.value());
  EXPECT_TRUE(separated.ok()) << separated.status();
  return std::move(separated).value();
}

class Places : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    graph_ = Recurrence(GetParam());
    const auto loops = ecg::FindLoops(graph_);
    ASSERT_TRUE(loops.ok()) << loops.status();
    memory_ = PlaceLoopValues(graph_, *loops);
    begin_ = &graph_.node(loops->list[0].begin), end_ = &graph_.node(loops->list[0].end);
  }
  int64_t SlotIn(const LoopPlace &place, int64_t iteration) const {
    const int64_t slots = memory_.SlotsOf(place).slots;
    return ((place.first + place.step * iteration) % slots + slots) % slots;
  }

  ecg::Graph graph_;
  LoopMemory memory_;
  const ecg::Node *begin_ = nullptr, *end_ = nullptr;  // of the graph
};

TEST_P(Places, EachIterationFindsWhatTheOneBeforeItLeft) {
  for (int k = 0; k < 2; ++k) {
    const LoopPlace &carried = memory_.places.at(begin_->outputs[k]), &next = memory_.places.at(end_->inputs[1 + k]);
    const LoopPlace &initial = memory_.places.at(begin_->inputs[k]), &last = memory_.places.at(end_->outputs[k]);
    EXPECT_EQ(carried.memory, next.memory);
    EXPECT_EQ(carried.memory, initial.memory);
    EXPECT_EQ(carried.memory, last.memory);
    EXPECT_EQ(SlotIn(carried, 0), SlotIn(initial, 0));
    for (int64_t t = 0; t < 4; ++t) {
      EXPECT_NE(SlotIn(carried, t), SlotIn(next, t)) << t;
      EXPECT_EQ(SlotIn(next, t), t < 3 ? SlotIn(carried, t + 1) : SlotIn(last, 0)) << t;
    }
  }
}

TEST_P(Places, StacksAndSlicesAreInTheOrderOfTheIterations) {
  const bool reversed = GetParam();
  for (int s = 0; s < 2; ++s) {
    const LoopPlace &stack = memory_.places.at(end_->outputs[2 + s]), &value = memory_.places.at(end_->inputs[3 + s]);
    EXPECT_EQ(stack.memory, value.memory);
    EXPECT_EQ(stack.loop, -1);
    for (int64_t t = 0; t < 4; ++t) {
      EXPECT_EQ(SlotIn(value, t) - SlotIn(stack, 0), reversed ? 3 - t : t) << s << " " << t;
    }
    const LoopSlots &slots = memory_.SlotsOf(stack);
    EXPECT_EQ((slots.lead_bytes + SlotIn(stack, 0) * slots.slot_bytes) % 64, 0);
    EXPECT_EQ(memory_.SlotsOf(value).slot_bytes, 20);  // a stack has no gaps
  }
  const LoopPlace &slice = memory_.places.at(begin_->outputs[2]);
  EXPECT_EQ(slice.whole, begin_->inputs[2]);
  for (int64_t t = 0; t < 4; ++t) EXPECT_EQ(SlotIn(slice, t), reversed ? 3 - t : t);
  // The state that is stacked has one slot more than there are iterations, the other one two slots.
  EXPECT_EQ(memory_.SlotsOf(memory_.places.at(begin_->outputs[0])).slots, 2);
  EXPECT_EQ(memory_.SlotsOf(memory_.places.at(begin_->outputs[1])).slots, 5);
}

INSTANTIATE_TEST_SUITE_P(Directions, Places, ::testing::Bool());

TEST(SeparateLoopValues, CopiesWhatTheLoopCannotWriteItself) {
  auto graph = ecg::Parse(R"(graph g(%h0: f32[5], %xs: f32[4, 5], %k: f32[5]) {
  %h: f32[5], %x: f32[5] = LoopBegin(%h0, %xs) {carried = 1, loop = 1, reversed = ints[0], trips = 4}
  %y: f32[5] = Add(%h, %x)
  %l: f32[5], %a: f32[4, 5], %b: f32[4, 5], %c: f32[4, 5] = LoopEnd(%h, %h, %k, %y, %y) {carried = 1, loop = 1, reversed = ints[0, 0, 0], trips = 4}
  return %l, %a, %b, %c
})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto separated = simplify::SeparateLoopValues(*graph);
  ASSERT_TRUE(separated.ok()) << separated.status();
  ASSERT_TRUE(ecg::Verify(*separated).ok()) << ecg::Verify(*separated);
  const auto loops = ecg::FindLoops(*separated);
  ASSERT_TRUE(loops.ok());
  int before = 0, within = 0, behind = 0;
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(separated->nodes().size()); ++id) {
    const std::string &op = separated->node(id).op;
    if (op == "Identity") ++(id < loops->list[0].begin ? before : behind);
    if (op != "LoopCopy") continue;
    ++within;
    EXPECT_EQ(loops->of_node[id], 0);
  }
  EXPECT_EQ(before, 2);  // the initial state, which others may read, and the slices, which are the caller's
  EXPECT_EQ(within,
            3);  // a state that stays as it is, what does not depend on the iteration, and the second stack of y
  EXPECT_EQ(behind, 4);  // outputs
}

TEST(SegmentsOf, ALoopIsOneSegmentBetweenWhatRunsOnce) {
  const ecg::Graph graph = Recurrence(false);
  const auto loops = ecg::FindLoops(graph);
  ASSERT_TRUE(loops.ok());
  std::vector<FusionBlock> fusion_blocks;
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph.nodes().size()); ++id) fusion_blocks.push_back({id});
  std::set<size_t> boundaries;
  const std::vector<LoopSegment> segments = SegmentsOf(graph, *loops, fusion_blocks, &boundaries);
  ASSERT_EQ(segments.size(), 3u);
  EXPECT_EQ(segments[0].loop, ecg::Loops::kOnce);
  EXPECT_EQ(segments[1].loop, 0);
  EXPECT_EQ(segments[2].loop, ecg::Loops::kOnce);
  EXPECT_THAT(boundaries,
              UnorderedElementsAre(static_cast<size_t>(loops->list[0].begin), static_cast<size_t>(loops->list[0].end)));
  std::vector<std::vector<size_t>> launches;
  for (const LoopSegment &segment : segments) {
    for (const size_t b : segment.fusion_blocks) launches.push_back({b});
  }
  const std::vector<LaunchLoop> of_launches = LoopsOfLaunches(*loops, fusion_blocks, launches);
  ASSERT_EQ(of_launches.size(), 1u);
  EXPECT_EQ(of_launches[0].first, segments[0].fusion_blocks.size());
  EXPECT_EQ(of_launches[0].end, segments[0].fusion_blocks.size() + segments[1].fusion_blocks.size());
  EXPECT_EQ(of_launches[0].trips, 4);
}

}  // namespace
}  // namespace fusion
