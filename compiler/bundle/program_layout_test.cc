#include "compiler/bundle/program_layout.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "compiler/bundle/kernel_files.h"
#include "compiler/bundle/weights.h"
#include "compiler/launch/concurrent_launches.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using testing::GraphMaker;

// Values of equal size, each made of one or two earlier ones; what nobody reads is a result.
GraphMaker RandomGraph(uint64_t seed) {
  std::mt19937_64 random(seed);
  GraphMaker g;
  std::vector<ecg::ValueId> values = {g.In({64}), g.In({64})};
  std::set<ecg::ValueId> read;
  for (int i = 0; i < 24; ++i) {
    const auto any = [&] { return values[random() % values.size()]; };
    const ecg::ValueId a = any(), b = any();
    const char* const unary[] = {"Exp", "Neg", "Tanh"};
    values.push_back(random() % 2 == 0 || a == b ? g.Op(unary[random() % 3], {a}) : g.Op("Add", {a, b}));
    read.insert({a, b});
  }
  for (const ecg::ValueId v : values) {
    if (read.count(v) == 0 && v != values[0] && v != values[1]) g.Out(v);
  }
  return g;
}

// One launch for each node.
std::vector<PlannedLaunch> LaunchesOf(const GraphMaker& g, GroupLaunches which, std::vector<ecg::NodeId>* node_of) {
  const auto kernels = testing::KernelOfEachNode(g.graph());
  std::vector<std::vector<size_t>> each;
  for (size_t b = 0; b < kernels.size(); ++b) each.push_back({b});
  const LaunchOrder order = GroupConcurrentLaunches(kernels, {}, each, testing::Avx512Device(), which);
  std::vector<PlannedLaunch> launches;
  for (size_t l = 0; l < order.launches.size(); ++l) {
    const size_t b = order.launches[l][0];
    launches.push_back({*kernels[b], {}, "", {}, order.concurrent[l]});
    node_of->push_back(static_cast<ecg::NodeId>(b));
  }
  return launches;
}

LaidOut LayOutOf(const GraphMaker& g, const std::vector<PlannedLaunch>& launches) {
  std::vector<const FusionKernel*> fusion_kernels;
  for (const PlannedLaunch& launch : launches) fusion_kernels.push_back(&launch.fusion_kernel);
  const KernelTexts texts = PrintKernels(fusion_kernels, testing::Avx512Device());
  const ValueLayouts layouts;
  const std::map<ecg::ValueId, Inside> inside;
  Weights weights;
  return LayOut(texts, {&g.graph(), &layouts, &launches, &inside, texts.places, {}, {}, {}}, &weights).value();
}

// The places in the arena, by value.
class Arena {
 public:
  using Range = std::pair<int64_t, int64_t>;
  static Range RangeOf(const Buffer& buffer) { return {buffer.offset, buffer.offset + buffer.size_bytes}; }

  void Write(const Buffer& buffer, ecg::ValueId value) {
    const Range range = RangeOf(buffer);
    std::erase_if(held_,
                  [&](const auto& one) { return one.first.first < range.second && range.first < one.first.second; });
    held_[range] = value;
  }
  bool Holds(const Buffer& buffer, ecg::ValueId value) const {
    const auto it = held_.find(RangeOf(buffer));
    return it != held_.end() && it->second == value;
  }

 private:
  std::map<Range, ecg::ValueId> held_;
};

// Goes through the launches in order: what a launch reads must lie where the layout says, and what a concurrent launch
// writes must not touch what the others of its group use. Returns the number of results in an operand's memory.
int CheckMemory(const GraphMaker& g, GroupLaunches which) {
  std::vector<ecg::NodeId> node_of;
  const std::vector<PlannedLaunch> launches = LaunchesOf(g, which, &node_of);
  const ManifestProgram program = LayOutOf(g, launches).program;
  Arena arena;
  int in_place = 0;
  const auto in_arena = [&](int buffer) { return program.buffers[buffer].kind == Buffer::Kind::kArena; };
  for (size_t first = 0, end = 0; first < launches.size(); first = end) {
    for (end = first + 1; end < launches.size() && program.launches[end].concurrent;) ++end;
    for (size_t l = first; l < end; ++l) {
      const std::vector<int>& buffers = program.launches[l].buffers;
      for (size_t a = 0; a < buffers.size(); ++a) {
        const Buffer& used = program.buffers[buffers[a]];
        const KernelArg& arg = launches[l].fusion_kernel.args[a];
        if (!in_arena(buffers[a])) continue;
        if (!arg.written) EXPECT_TRUE(arena.Holds(used, arg.value)) << used.name;
        for (size_t other = first; other < end; ++other) {
          for (size_t o = 0; o < program.launches[other].buffers.size(); ++o) {
            const int buffer = program.launches[other].buffers[o];
            if (!launches[other].fusion_kernel.args[o].written || !in_arena(buffer) || buffer == buffers[a]) continue;
            const auto [begin, limit] = Arena::RangeOf(program.buffers[buffer]);
            const auto [from, to] = Arena::RangeOf(used);
            const bool apart = to <= begin || limit <= from;
            if (other == l) in_place += !apart && !arg.written;
            if (other != l) EXPECT_TRUE(apart) << used.name << " and " << program.buffers[buffer].name;
          }
        }
      }
    }
    for (size_t l = first; l < end; ++l) {
      for (size_t a = 0; a < launches[l].fusion_kernel.args.size(); ++a) {
        const int buffer = program.launches[l].buffers[a];
        const KernelArg& arg = launches[l].fusion_kernel.args[a];
        if (arg.written && in_arena(buffer)) arena.Write(program.buffers[buffer], arg.value);
      }
    }
  }
  return in_place;
}

TEST(ProgramLayout, WhatIsReadIsStillThere) {
  int alone = 0, together = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const GraphMaker g = RandomGraph(seed);
    SCOPED_TRACE(seed);
    alone += CheckMemory(g, GroupLaunches::kThatGain);
    together += CheckMemory(g, GroupLaunches::kAllThatMay);
  }
  EXPECT_GT(together, 0);
  EXPECT_GT(alone, 0);
}

}  // namespace
}  // namespace fusion
