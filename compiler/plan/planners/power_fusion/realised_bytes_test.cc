#include "compiler/plan/planners/power_fusion/realised_bytes.h"

#include <gtest/gtest.h>

#include "compiler/plan/planners/power_fusion/testing/operators.h"

namespace fusion::power_fusion {
namespace {

constexpr double kMatrix = 64 * 64 * 4, kColumn = 64 * 4;

constexpr char kNorm[] = R"(graph g(%x: f32[64, 64]) {
  %axis: i64[1] = const {1}
  %e: f32[64, 64] = Exp(%x)
  %s: f32[64, 1] = ReduceSum(%e, %axis)
  %y: f32[64, 64] = Div(%e, %s)
  return %y
})";

MovedBytes Count(const Operators& graph, std::vector<std::vector<int>> phase_members, int64_t device_scope_bytes) {
  FusionBlockAccount account;
  account.phases = static_cast<int64_t>(phase_members.size());
  account.phase_members = std::move(phase_members);
  account.device_scope_bytes = device_scope_bytes;
  return RealisedBytes(graph.graph, graph.basic, FusionBlock(graph.nodes), account, graph.device);
}

TEST(RealisedBytes, OnePhaseReadsOperandsAndWritesResults) {
  const Operators graph(kNorm);
  const MovedBytes moved = Count(graph, {{0, 1, 2}}, 0);
  EXPECT_EQ(moved.read, kMatrix);
  EXPECT_EQ(moved.written, kMatrix);
  EXPECT_EQ(moved.phases, 1);
}

TEST(RealisedBytes, APhaseReadsWhatAnEarlierOneLeft) {
  const Operators graph(kNorm);
  const MovedBytes moved = Count(graph, {{0, 1}, {2}}, static_cast<int64_t>(kMatrix + kColumn));
  EXPECT_EQ(moved.read, kMatrix + kMatrix + kColumn) << "%x, then %e and %s";
  EXPECT_EQ(moved.written, kMatrix + kColumn + kMatrix);
}

TEST(RealisedBytes, WhatIsComputedAgainReadsItsOperandsAgain) {
  const Operators graph(kNorm);
  const MovedBytes moved = Count(graph, {{0, 1}, {0, 2}}, static_cast<int64_t>(kColumn));
  EXPECT_EQ(moved.read, kMatrix + kMatrix + kColumn);
  EXPECT_EQ(moved.written, kColumn + kMatrix);
}

TEST(RealisedBytes, AReductionInTwoPhasesHandsOverPartialResults) {
  const Operators graph(kNorm);
  // Eight partial sums a row; the second phase combines them and computes %e again.
  const MovedBytes moved = Count(graph, {{0, 1}, {0, 1, 2}}, static_cast<int64_t>(8 * kColumn));
  EXPECT_EQ(moved.read, kMatrix + kMatrix + 8 * kColumn);
  EXPECT_EQ(moved.written, 8 * kColumn + kMatrix);
}

TEST(RealisedBytes, AnAccountWithoutPhasesIsOne) { EXPECT_EQ(Count(Operators(kNorm), {}, 0).phases, 1); }

}  // namespace
}  // namespace fusion::power_fusion
