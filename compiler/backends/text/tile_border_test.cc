#include "compiler/backends/text/tile_border.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fusion::text {
namespace {

const te::Axis kRow{0, 10}, kTap{1, 3};

te::Scalar X() { return te::Load(0, DType::kF32, {te::Index(kRow) + te::Index(kTap)}); }

// The row and the tap lie inside an image whose border is one element wide.
te::Pred Inside() {
  const te::Index at = te::Index(kRow) + te::Index(kTap) - 1;
  return {{at, te::Cmp::kGe, te::Index(0)}, {at, te::Cmp::kLt, te::Index(10)}};
}

te::Pred Taken(const te::Scalar& body, te::ReductionKind kind) {
  te::Pred guards;
  TakeGuards(body, kind, &guards);
  return guards;
}

TEST(TakeGuards, OnlyTheIdentityOfTheReductionIsSkipped) {
  const auto guarded = [](double otherwise) { return te::If(Inside(), X(), te::Imm(DType::kF32, otherwise)); };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Taken(guarded(0), te::ReductionKind::kSum).size(), 2u);
  EXPECT_EQ(Taken(guarded(1), te::ReductionKind::kSum).size(), 0u);
  EXPECT_EQ(Taken(guarded(1), te::ReductionKind::kProd).size(), 2u);
  EXPECT_EQ(Taken(guarded(0), te::ReductionKind::kProd).size(), 0u);
  EXPECT_EQ(Taken(guarded(0), te::ReductionKind::kMax).size(), 0u);  // zeros beside the image may be the largest
  EXPECT_EQ(Taken(guarded(-infinity), te::ReductionKind::kMax).size(), 2u);
  EXPECT_EQ(Taken(guarded(infinity), te::ReductionKind::kMax).size(), 0u);
  EXPECT_EQ(Taken(guarded(infinity), te::ReductionKind::kMin).size(), 2u);
}

TEST(TakeGuards, AFactorThatIsZeroOutsideMakesTheProductZero) {
  const te::Scalar factor = te::If(Inside(), X(), te::Imm(DType::kF32, 0));
  te::Pred guards;
  const te::Scalar rest = TakeGuards(te::Call(te::Op::kMul, {factor, X()}), te::ReductionKind::kSum, &guards);
  EXPECT_EQ(guards.size(), 2u);
  EXPECT_EQ(rest->args[0]->kind, te::ScalarKind::kLoad);
  // A sum of two values is not zero where one of them is.
  EXPECT_EQ(Taken(te::Call(te::Op::kAdd, {factor, X()}), te::ReductionKind::kSum).size(), 0u);
}

std::vector<std::map<int, int64_t>> Taps() { return {{{kTap.id, 0}}, {{kTap.id, 1}}, {{kTap.id, 2}}}; }

TEST(RunsOfTiles, EveryRowIsInOneTile) {
  for (int tile_rows = 1; tile_rows <= 11; ++tile_rows) {
    int64_t next = 0;
    for (const TileRun& run : RunsOfTiles(kRow, tile_rows, Inside(), Taps())) {
      EXPECT_EQ(run.first, next) << tile_rows;
      next += run.count * run.rows;
    }
    EXPECT_EQ(next, kRow.extent) << tile_rows;
  }
}

TEST(RunsOfTiles, AMaskSaysWhichTapsOfARowLieInside) {
  for (int tile_rows = 1; tile_rows <= 11; ++tile_rows) {
    for (const TileRun& run : RunsOfTiles(kRow, tile_rows, Inside(), Taps())) {
      for (int64_t tile = 0; tile < run.count; ++tile) {
        for (int r = 0; r < run.rows; ++r) {
          for (size_t tap = 0; tap < 3; ++tap) {
            const int64_t at = run.first + tile * run.rows + r + static_cast<int64_t>(tap) - 1;
            const bool inside = at >= 0 && at < 10;
            const bool masked_in = run.mask.empty() || run.mask[r * 3 + tap];
            EXPECT_EQ(masked_in, inside) << tile_rows << " row " << at;
          }
        }
      }
    }
  }
}

// Ten rows in tiles of two: the border is in the first and in the last, and the three between are one loop.
TEST(RunsOfTiles, TilesWithEqualTestsAreOneRun) {
  const std::vector<TileRun> runs = RunsOfTiles(kRow, 2, Inside(), Taps());
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[1].count, 3);
  EXPECT_TRUE(runs[1].mask.empty());
  EXPECT_EQ(RunsOfTiles(kRow, 2, {}, Taps()).size(), 1u);
}

}  // namespace
}  // namespace fusion::text
