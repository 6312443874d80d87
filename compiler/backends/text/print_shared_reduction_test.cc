#include "compiler/backends/text/print_shared_reduction.h"

#include <gtest/gtest.h>

#include <optional>

namespace fusion::text {
namespace {

// A sum of `terms` for each of `results`.
movement::Step SumOf(int64_t results, int64_t terms) {
  movement::Step step;
  step.loops = {{{0, results}, std::nullopt}};
  step.reduction = te::Reduction{te::ReductionKind::kSum, {{1, terms}}, {}, DType::kF32, {}};
  return step;
}

TEST(ReductionTeam, WorkItemsThatWouldBeIdleShareResults) {
  EXPECT_EQ(ReductionTeam(SumOf(64, 1000), 64), 1) << "a result for each";
  EXPECT_EQ(ReductionTeam(SumOf(16, 1000), 64), 4);
  EXPECT_EQ(ReductionTeam(SumOf(1, 1000), 64), 64);
  EXPECT_EQ(ReductionTeam(SumOf(1000, 1000), 64), 1);
  EXPECT_EQ(ReductionTeam(SumOf(1, 1000), 1), 1) << "nobody to share with";
}

TEST(ReductionTeam, AlwaysDividesTheWorkGroupAndHasATermForEach) {
  for (int size = 1; size <= 256; size *= 2) {
    for (const int64_t results : {1, 3, 17, 100, 1000}) {
      for (const int64_t terms : {1, 2, 5, 31, 1000}) {
        for (const bool row : {false, true}) {
          movement::Step step = SumOf(results, terms);
          if (row) step.strategy = movement::RowReduction{1};
          const int team = ReductionTeam(step, size);
          EXPECT_GE(team, 1);
          EXPECT_EQ(size % team, 0) << size << " " << results << " " << terms;
          EXPECT_LE(team, terms) << size << " " << results << " " << terms;
        }
      }
    }
  }
}

TEST(ReductionTeam, ARowIsReadByNeighbours) {
  movement::Step row = SumOf(1000, 1000);
  row.strategy = movement::RowReduction{1};
  EXPECT_EQ(ReductionTeam(row, 64), 32);
  EXPECT_EQ(ReductionTeam(row, 16), 16);
}

TEST(ReductionTeam, MapsTilesAndBestElementsAreNotShared) {
  movement::Step map = SumOf(1, 1000);
  map.reduction.reset();
  EXPECT_EQ(ReductionTeam(map, 64), 1);
  movement::Step tile = SumOf(1, 1000);
  tile.strategy = movement::RegisterTile();
  EXPECT_EQ(ReductionTeam(tile, 64), 1);
  movement::Step best = SumOf(1, 1000);
  best.reduction->kind = te::ReductionKind::kGeneral;
  EXPECT_EQ(ReductionTeam(best, 64), 1);
}

}  // namespace
}  // namespace fusion::text
