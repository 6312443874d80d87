#include "compiler/launch/loop_memory.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/ops/control/loop.h"
#include "runtime/bundle/manifest.h"

namespace fusion {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes; }

class Placing {
 public:
  Placing(const ecg::Graph& graph, const ecg::Loops& loops) : graph_(graph), loops_(loops) {}

  LoopMemory Run() {
    for (size_t l = 0; l < loops_.list.size(); ++l) Place(static_cast<int>(l), loops_.list[l]);
    return std::move(memory_);
  }

 private:
  void Place(int index, const ecg::Loop& loop) {
    const ecg::Node &begin = graph_.node(loop.begin), &end = graph_.node(loop.end);
    const ops::LoopForm in = ops::LoopFormOf(begin), out = ops::LoopFormOf(end);
    const auto carried = static_cast<size_t>(loop.carried);
    for (size_t k = 0; k < in.reversed.size(); ++k) {
      const ecg::ValueId slice = begin.outputs[carried + k];
      const LoopSlots slots{ecg::ValueBytes(graph_.value(slice)), loop.trips};
      const bool reversed = in.reversed[k] != 0;
      memory_.places[slice] = {-1,   begin.inputs[carried + k], slots, reversed ? loop.trips - 1 : 0, reversed ? -1 : 1,
                               index};
    }
    std::set<size_t> with_state;  // stacks that also hold the carried value
    for (size_t k = 0; k < carried; ++k) {
      const ecg::ValueId next = end.inputs[1 + k];
      const auto first_stack = end.inputs.begin() + static_cast<std::ptrdiff_t>(1 + carried);
      const auto stacked = std::find(first_stack, end.inputs.end(), next);
      const int64_t bytes = ecg::ValueBytes(graph_.value(next));
      // Slots of the initial value, and the direction in which iterations go on from there.
      LoopSlots slots{Aligned(bytes), 2};
      int64_t initial = 0, step = 1;
      if (stacked != end.inputs.end()) {
        const auto s = static_cast<size_t>(stacked - first_stack);
        with_state.insert(s);
        const bool reversed = out.reversed[s] != 0;
        slots = {bytes, loop.trips + 1, reversed ? 0 : Aligned(bytes) - bytes};
        initial = reversed ? loop.trips : 0;
        step = reversed ? -1 : 1;
        PlaceWithin(end.outputs[carried + s], slots, reversed ? 0 : 1);
      } else {
        memory_.memories.push_back(slots);
      }
      PlaceOnce(begin.inputs[k], initial);
      PlaceMoving(begin.outputs[k], initial, step, index);
      PlaceMoving(next, initial + step, step, index);
      PlaceOnce(end.outputs[k], (initial + step * loop.trips) % slots.slots);
    }
    for (size_t s = 0; s < out.reversed.size(); ++s) {
      if (with_state.count(s) > 0) continue;
      const ecg::ValueId value = end.inputs[1 + carried + s];
      const LoopSlots slots{ecg::ValueBytes(graph_.value(value)), loop.trips};
      const bool reversed = out.reversed[s] != 0;
      PlaceWithin(end.outputs[carried + s], slots, 0);
      PlaceMoving(value, reversed ? loop.trips - 1 : 0, reversed ? -1 : 1, index);
    }
  }

  // A stack is a memory of its own, which it begins at a slot.
  void PlaceWithin(ecg::ValueId stack, const LoopSlots& slots, int64_t first) {
    memory_.memories.push_back(slots);
    PlaceOnce(stack, first);
  }

  // The following two place a value in the latest memory.
  void PlaceOnce(ecg::ValueId value, int64_t slot) {
    memory_.places[value] = {static_cast<int>(memory_.memories.size()) - 1, ecg::kNone, {}, slot, 0, -1};
  }
  void PlaceMoving(ecg::ValueId value, int64_t first, int64_t step, int loop) {
    memory_.places[value] = {static_cast<int>(memory_.memories.size()) - 1, ecg::kNone, {}, first, step, loop};
  }

  const ecg::Graph& graph_;
  const ecg::Loops& loops_;
  LoopMemory memory_;
};

}  // namespace

LoopMemory PlaceLoopValues(const ecg::Graph& graph, const ecg::Loops& loops) { return Placing(graph, loops).Run(); }

LoopValues ValuesOfLoops(const ecg::Graph& graph, const ecg::Loops& loops) {
  LoopValues values;
  for (const ecg::Loop& loop : loops.list) {
    const ecg::Node &begin = graph.node(loop.begin), &end = graph.node(loop.end);
    for (size_t i = 0; i < begin.inputs.size(); ++i) {
      if (static_cast<int>(i) < loop.carried) values.placed.insert(begin.inputs[i]);
    }
    values.placed.insert(end.inputs.begin() + 1, end.inputs.end());
    values.written = values.placed;
    values.placed.insert(begin.outputs.begin(), begin.outputs.end());
    values.placed.insert(end.outputs.begin(), end.outputs.end());
  }
  return values;
}

std::vector<LoopSegment> SegmentsOf(const ecg::Graph& graph, const ecg::Loops& loops,
                                    const std::vector<FusionBlock>& fusion_blocks, std::set<size_t>* boundaries) {
  // The groups that are ordered: each loop with its boundaries, and each other fusion block.
  const auto num_loops = static_cast<int>(loops.list.size());
  std::vector<int> group_of_node(graph.nodes().size(), 0);
  std::vector<int> group_of_fusion_block(fusion_blocks.size(), 0);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const ecg::NodeId first = fusion_blocks[b].nodes[0];
    int loop = loops.of_node[first];
    if (loop == ecg::Loops::kBoundary) {
      boundaries->insert(b);
      for (int l = 0; l < num_loops; ++l) {
        if (loops.list[l].begin == first || loops.list[l].end == first) loop = l;
      }
    }
    group_of_fusion_block[b] = loop >= 0 ? loop : num_loops + static_cast<int>(b);
    for (const ecg::NodeId id : fusion_blocks[b].nodes) group_of_node[id] = group_of_fusion_block[b];
  }
  const size_t groups = static_cast<size_t>(num_loops) + fusion_blocks.size();
  std::vector<std::set<int>> after(groups);
  std::vector<int> waits(groups, 0);
  std::vector<std::vector<size_t>> members(groups);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const int group = group_of_fusion_block[b];
    members[group].push_back(b);
    for (const ecg::NodeId id : fusion_blocks[b].Members()) {
      for (const ecg::ValueId v : graph.node(id).inputs) {
        if (v == ecg::kNone || graph.value(v).producer == ecg::kNone) continue;
        const int before = group_of_node[graph.value(v).producer];
        if (before != group && after[before].insert(group).second) ++waits[group];
      }
    }
  }
  using Ready = std::pair<size_t, int>;  // first fusion block, group
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t g = 0; g < groups; ++g) {
    if (!members[g].empty() && waits[g] == 0) ready.emplace(members[g][0], static_cast<int>(g));
  }
  std::vector<LoopSegment> segments;
  while (!ready.empty()) {
    const int group = ready.top().second;
    ready.pop();
    const int loop = group < num_loops ? group : ecg::Loops::kOnce;
    if (segments.empty() || loop >= 0 || segments.back().loop >= 0) segments.push_back({loop, {}});
    for (const size_t b : members[group]) {
      if (boundaries->count(b) == 0) segments.back().fusion_blocks.push_back(b);
    }
    for (const int next : after[group]) {
      if (--waits[next] == 0) ready.emplace(members[next][0], next);
    }
  }
  return segments;
}

std::vector<LaunchLoop> LoopsOfLaunches(const ecg::Loops& loops, const std::vector<FusionBlock>& fusion_blocks,
                                        const std::vector<std::vector<size_t>>& launches) {
  std::vector<LaunchLoop> result;
  for (size_t l = 0; l < launches.size(); ++l) {
    const int loop = loops.of_node[fusion_blocks[launches[l][0]].nodes[0]];
    if (loop < 0) continue;
    if (result.empty() || result.back().loop != loop) {
      result.push_back({loop, l, l, loops.list[static_cast<size_t>(loop)].trips});
    }
    result.back().end = l + 1;
  }
  return result;
}

}  // namespace fusion
