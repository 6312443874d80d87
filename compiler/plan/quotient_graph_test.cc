#include "compiler/plan/quotient_graph.h"

#include <gtest/gtest.h>

#include <random>

namespace fusion {
namespace {

// Each node adds two random earlier values.
ecg::Graph RandomGraph(std::mt19937* random, int nodes) {
  ecg::Graph graph;
  const ecg::ValueType type{DType::kF32, {4}};
  std::vector<ecg::ValueId> values = {graph.AddInput("x", type)};
  for (int i = 0; i < nodes; ++i) {
    const auto pick = [&] { return values[values.size() - 1 - (*random)() % std::min<size_t>(values.size(), 6)]; };
    values.push_back(graph.node(graph.AddNode("Add", "", {pick(), pick()}, {}, {type})).outputs[0]);
  }
  return graph;
}

// The reference: contracts the edge and sorts the whole quotient.
bool AcyclicWith(const ecg::Graph& graph, const QuotientGraph& quotient, ecg::NodeId a, ecg::NodeId b) {
  const int n = static_cast<int>(graph.nodes().size());
  std::vector<int> fusion_block(n);
  for (int id = 0; id < n; ++id) {
    fusion_block[id] = quotient.Together(id, b) ? a : id;
    for (int other = 0; other < id && !quotient.Together(id, b); ++other) {
      if (quotient.Together(id, other)) fusion_block[id] = fusion_block[other];
    }
    if (quotient.Together(id, a)) fusion_block[id] = a;
  }
  std::vector<bool> done(n, false);
  for (bool moved = true; moved;) {
    moved = false;
    for (int candidate = 0; candidate < n; ++candidate) {
      if (fusion_block[candidate] != candidate && candidate != a) continue;
      if (done[fusion_block[candidate]]) continue;
      bool ready = true;
      for (int id = 0; id < n; ++id) {
        if (fusion_block[id] != fusion_block[candidate]) continue;
        for (ecg::NodeId before : quotient.Predecessors(id))
          ready &= fusion_block[before] == fusion_block[id] || done[fusion_block[before]];
      }
      if (ready) moved = done[fusion_block[candidate]] = true;
    }
  }
  for (int id = 0; id < n; ++id) {
    if (!done[fusion_block[id]]) return false;
  }
  return true;
}

TEST(QuotientGraph, AgreesWithSortingTheWholeGraph) {
  std::mt19937 random(7);
  int accepted = 0, refused = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const ecg::Graph graph = RandomGraph(&random, 16);
    QuotientGraph quotient(graph);
    for (int step = 0; step < 40; ++step) {
      const ecg::NodeId consumer = static_cast<ecg::NodeId>(random() % 16);
      if (quotient.Predecessors(consumer).empty()) continue;
      const ecg::NodeId producer = quotient.Predecessors(consumer)[random() % quotient.Predecessors(consumer).size()];
      if (quotient.Together(producer, consumer)) continue;
      const bool possible = quotient.PathBetween(producer, consumer) == ecg::kNone;
      ASSERT_EQ(possible, AcyclicWith(graph, quotient, producer, consumer)) << "trial " << trial << " step " << step;
      ++(possible ? accepted : refused);
      if (!possible) continue;
      quotient.Contract(producer, consumer);
      std::vector<int> place(16, -1);
      const auto fusion_blocks = quotient.FusionBlocks();
      for (size_t b = 0; b < fusion_blocks.size(); ++b) {
        for (ecg::NodeId id : fusion_blocks[b]) place[id] = static_cast<int>(b);
      }
      for (ecg::NodeId id = 0; id < 16; ++id) {
        ASSERT_GE(place[id], 0);
        for (ecg::NodeId before : quotient.Predecessors(id)) ASSERT_LE(place[before], place[id]);
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace fusion
