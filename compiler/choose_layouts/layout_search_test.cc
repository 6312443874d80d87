#include "compiler/choose_layouts/layout_search.h"

#include <gtest/gtest.h>

#include <random>

#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion {
namespace {

using ecg::ValueId;
using G = testing::GraphMaker;

const Layout kBlocked{1, 16}, kLast{1, Layout::kWhole};

// A length that depends on the operator and on the layouts of its values.
double MadeUpLength(const ecg::Graph& graph, ecg::NodeId id, const ValueLayouts& layouts, unsigned seed) {
  uint64_t hash = seed;
  const auto mix = [&](ValueId v) {
    const auto it = layouts.find(v);
    const uint64_t layout = it == layouts.end() ? 0 : it->second == kBlocked ? 1 : 2;
    hash = (hash * 31 + v * 3 + layout) * 0x9E3779B97F4A7C15u;
  };
  for (ValueId v : graph.node(id).inputs) mix(v);
  for (ValueId v : graph.node(id).outputs) mix(v);
  return static_cast<double>(hash >> 40);
}

double Length(const ecg::Graph& graph, const ValueLayouts& layouts, unsigned seed) {
  double sum = 0;
  for (ecg::NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    sum += MadeUpLength(graph, id, layouts, seed);
  }
  return sum;
}

// Compares with all assignments, on random graphs of `operators` operators whose values may have one of `others` or be
// plain.
void ExpectShortest(int operators, const std::vector<Layout>& others) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    G g;
    std::vector<ValueId> values = {g.In({1, 32, 4, 4})};
    for (int n = 0; n < operators; ++n) {  // chains, branches and joins
      const auto recent = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 3)]; };
      const ValueId a = recent(), b = recent();
      values.push_back(random() % 2 == 0 ? g.Op("Relu", {a}) : g.Op("Add", {a, b}));
    }
    g.Out(values.back());
    std::vector<std::vector<ValueId>> groups;
    for (size_t v = 1; v + 1 < values.size(); v += 1 + random() % 2) {
      if (!groups.empty() && random() % 4 == 0) {
        groups.back().push_back(values[v]);
      } else {
        groups.push_back({values[v]});
      }
    }
    const ecg::Graph& graph = g.graph();
    const auto cost = [&](ecg::NodeId id, const ValueLayouts& layouts) -> absl::StatusOr<double> {
      return MadeUpLength(graph, id, layouts, seed);
    };
    const absl::StatusOr<ValueLayouts> found = ShortestLayouts(graph, groups, others, {}, cost);
    ASSERT_TRUE(found.ok()) << found.status();
    double shortest = Length(graph, {}, seed);
    size_t assignments = 1;
    for (size_t i = 0; i < groups.size(); ++i) assignments *= 1 + others.size();
    for (size_t a = 1; a < assignments; ++a) {
      ValueLayouts layouts;
      size_t rest = a;
      for (const std::vector<ValueId>& group : groups) {
        for (ValueId v : group) {
          if (const size_t layout = rest % (1 + others.size()); layout != 0) layouts[v] = others[layout - 1];
        }
        rest /= 1 + others.size();
      }
      shortest = std::min(shortest, Length(graph, layouts, seed));
    }
    EXPECT_EQ(Length(graph, *found, seed), shortest) << "seed " << seed;
  }
}

TEST(ShortestLayouts, NoAssignmentIsShorter) {
  ExpectShortest(12, {kBlocked});
  ExpectShortest(8, {kBlocked, kLast});
}

TEST(ShortestLayouts, ATieStaysPlainAndOthersKeepTheirs) {
  G g;
  const ValueId a = g.Op("Relu", {g.In({1, 32, 4, 4})}), b = g.Op("Relu", {a});
  g.Out(g.Op("Relu", {b}));
  const auto equal = [](ecg::NodeId, const ValueLayouts&) -> absl::StatusOr<double> { return 1; };
  const absl::StatusOr<ValueLayouts> found =
      ShortestLayouts(g.graph(), {{a}}, {kBlocked, kLast}, {{b, kBlocked}}, equal);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(*found, (ValueLayouts{{b, kBlocked}}));
}

}  // namespace
}  // namespace fusion
