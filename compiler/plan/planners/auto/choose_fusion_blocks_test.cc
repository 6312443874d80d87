#include "compiler/plan/planners/auto/choose_fusion_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "absl/status/status.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using Edges = std::vector<std::pair<int, int>>;

// Can the chosen candidates run one after another? Decided by removing those that wait for nobody.
bool CanRun(const Edges& edges, const std::vector<CandidateFusionBlock>& all, std::vector<size_t> left) {
  const auto holds = [&](size_t c, int node) {
    return std::find(all[c].nodes.begin(), all[c].nodes.end(), node) != all[c].nodes.end();
  };
  while (!left.empty()) {
    const auto free = std::find_if(left.begin(), left.end(), [&](size_t c) {
      return std::none_of(edges.begin(), edges.end(), [&](const auto& edge) {
        return holds(c, edge.second) && !holds(c, edge.first) &&
               std::any_of(left.begin(), left.end(), [&](size_t other) { return holds(other, edge.first); });
      });
    });
    if (free == left.end()) return false;
    left.erase(free);
  }
  return true;
}

// The least cost over all subsets; nothing if none is a choice.
std::optional<double> BruteForce(int nodes, const Edges& edges, const std::vector<CandidateFusionBlock>& all) {
  std::optional<double> least;
  for (uint64_t subset = 0; subset < uint64_t{1} << all.size(); ++subset) {
    std::vector<int> held(nodes, 0);
    std::vector<size_t> chosen;
    double cost = 0;
    for (size_t c = 0; c < all.size(); ++c) {
      if ((subset >> c & 1) == 0) continue;
      chosen.push_back(c);
      cost += all[c].cost;
      for (const int node : all[c].nodes) ++held[node];
    }
    const bool once = std::all_of(held.begin(), held.end(), [](int times) { return times == 1; });
    if (once && (!least || cost < *least) && CanRun(edges, all, chosen)) least = cost;
  }
  return least;
}

TEST(ChooseFusionBlocks, TakesTheCheapestCover) {
  const std::vector<CandidateFusionBlock> candidates = {{{0}, 3},    {{1}, 3},    {{2}, 3},
                                                        {{0, 1}, 4}, {{1, 2}, 5}, {{0, 1, 2}, 8}};
  const auto choice = ChooseFusionBlocks(3, {{0, 1}, {1, 2}}, candidates);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_THAT(choice->chosen, ElementsAre(2, 3));
  EXPECT_EQ(choice->cost, 7);
  EXPECT_TRUE(choice->exact);
}

// 0 and 2 together would wait for 1, which waits for 0.
TEST(ChooseFusionBlocks, LeavesOutWhatWouldWaitForItself) {
  const std::vector<CandidateFusionBlock> candidates = {{{0}, 5}, {{1}, 5}, {{2}, 5}, {{0, 2}, 1}};
  const auto choice = ChooseFusionBlocks(3, {{0, 1}, {1, 2}}, candidates);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_THAT(choice->chosen, ElementsAre(0, 1, 2));
  EXPECT_EQ(ChooseFusionBlocks(3, {{0, 1}, {1, 2}}, {{{1}, 5}, {{0, 2}, 1}}).status().code(),
            absl::StatusCode::kNotFound);
}

// Two candidates may be fine alone and wait for each other: {0, 3} and {1, 2} on the edges 0 → 1 and 2 → 3.
TEST(ChooseFusionBlocks, SeesCirclesOfSeveralCandidates) {
  const std::vector<CandidateFusionBlock> candidates = {{{0, 3}, 1}, {{1, 2}, 1}, {{0}, 2},
                                                        {{3}, 2},    {{1}, 4},    {{2}, 4}};
  const auto choice = ChooseFusionBlocks(4, {{0, 1}, {2, 3}}, candidates);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->cost, 5);
  EXPECT_THAT(choice->chosen, ElementsAre(1, 2, 3));
}

TEST(ChooseFusionBlocks, OfEqualChoicesTheResultIsAlwaysTheSame) {
  const std::vector<CandidateFusionBlock> candidates = {{{0}, 1}, {{1}, 1}, {{0, 1}, 2}};
  const auto first = ChooseFusionBlocks(2, {{0, 1}}, candidates), second = ChooseFusionBlocks(2, {{0, 1}}, candidates);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->chosen, second->chosen);
}

TEST(ChooseFusionBlocks, RefusesWhatItCannotChooseFrom) {
  const std::vector<CandidateFusionBlock> many(kMostCandidateFusionBlocks + 1, {{0}, 1});
  EXPECT_EQ(ChooseFusionBlocks(1, {}, many).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ChooseFusionBlocks(2, {}, {{{0}, 1}}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ChooseFusionBlocks(1, {}, {{{1}, 1}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ChooseFusionBlocks(1, {}, {{{0}, -1}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ChooseFusionBlocks(1, {}, {{{0}, std::numeric_limits<double>::quiet_NaN()}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ChooseFusionBlocks(1, {}, {{{}, 1}}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ChooseFusionBlocks(1, {{0, 1}}, {{{0}, 1}}).status().code(), absl::StatusCode::kInvalidArgument);
}

// Random candidates on random graphs, convex or not, some of which have no choice at all.
TEST(ChooseFusionBlocks, AgreesWithBruteForce) {
  std::mt19937 random(7);
  const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  int none = 0, circles = 0;
  for (int round = 0; round < 400; ++round) {
    const int nodes = 1 + below(7);
    Edges edges;
    for (int to = 1; to < nodes; ++to) {
      for (int from = 0; from < to; ++from) {
        if (below(3) == 0) edges.emplace_back(from, to);
      }
    }
    std::vector<CandidateFusionBlock> candidates;
    for (int c = 1 + below(13); c > 0; --c) {
      std::set<int> held;
      for (int n = 1 + below(3); n > 0; --n) held.insert(below(nodes));
      candidates.push_back({{held.begin(), held.end()}, static_cast<double>(below(20))});
    }
    const std::optional<double> least = BruteForce(nodes, edges, candidates);
    const std::optional<double> without_edges = BruteForce(nodes, {}, candidates);
    circles += without_edges != least ? 1 : 0;
    const auto choice = ChooseFusionBlocks(nodes, edges, candidates);
    ASSERT_EQ(choice.ok(), least.has_value()) << "round " << round << ": " << choice.status();
    if (!least) {
      ++none;
      continue;
    }
    EXPECT_DOUBLE_EQ(choice->cost, *least) << "round " << round;
    EXPECT_TRUE(CanRun(edges, candidates, choice->chosen)) << "round " << round;
  }
  EXPECT_GT(none, 20) << "some have no choice";
  EXPECT_GT(circles, 10) << "edges decide some";
}

// A chain of twenty nodes with each node and each pair as candidates, of which the choice by branch and bound is known.
TEST(ChooseFusionBlocks, FortyCandidatesAreNoTrouble) {
  std::vector<CandidateFusionBlock> candidates;
  Edges edges;
  for (int node = 0; node < 20; ++node) candidates.push_back({{node}, 10});
  for (int node = 0; node + 1 < 20; ++node) candidates.push_back({{node, node + 1}, 19.0 - node % 2});
  for (int node = 0; node + 1 < 20; ++node) edges.emplace_back(node, node + 1);
  const auto choice = ChooseFusionBlocks(20, edges, candidates);
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_TRUE(choice->exact);
  // Pairs that begin at an odd node cost 18, and nine of them leave the two ends; pairs at even nodes cost 19.
  EXPECT_EQ(choice->cost, 9 * 18 + 2 * 10);
  EXPECT_LT(choice->looked_at, 50'000);
}

}  // namespace
}  // namespace fusion
