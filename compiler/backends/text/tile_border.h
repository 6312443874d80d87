// The border tests of a register tile: they are taken off the body, and the rows are cut into runs of tiles in which
// the same tests hold, so that no test runs inside a tile.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_TILE_BORDER_H_
#define FUSION_COMPILER_BACKENDS_TEXT_TILE_BORDER_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/te/program/program.h"

namespace fusion::text {

// Takes tests off the body: `if pred then x else identity` skips the step instead of adding nothing. Returns the rest
// and adds the tests to `guards`.
te::Scalar TakeGuards(const te::Scalar& s, te::ReductionKind kind, te::Pred* guards);

// A run of `count` row tiles that start at first, first+rows, … and have the same border tests.
struct TileRun {
  int64_t first, count;
  int rows;
  std::vector<bool> mask;  // [row in tile][unrolled point]; empty: all tests hold
};

// Cuts the rows into runs of tiles of `tile_rows` rows, the last of which may be shorter. `points` has the values of
// the unrolled axes at each unrolled point; `guards` may use these and the row only.
std::vector<TileRun> RunsOfTiles(const te::Axis& row, int tile_rows, const te::Pred& guards,
                                 const std::vector<std::map<int, int64_t>>& points);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_TILE_BORDER_H_
