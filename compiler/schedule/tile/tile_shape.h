// Chooses rows and vectors of an accumulator tile by the device's ports (two FMAs and two loads a cycle): the
// accumulators cover the FMA latency, and the registers hold the accumulators, one row of vectors and one broadcast.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_TILE_SHAPE_H_
#define FUSION_COMPILER_SCHEDULE_TILE_TILE_SHAPE_H_

#include <cstdint>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/cost/tile_cycles.h"

namespace fusion {

// The most vectors of a tile.
inline constexpr int kMostTileVectors = 8;

struct TileShape {
  int rows = 1;
  int vectors = 1;
  double cycles_per_step = 0;  // time of a reduction step for all the rows and vectors
};

// The fastest shape for `rows` and `vectors` in all.
TileShape ChooseTileShape(int64_t rows, int64_t vectors, const TileReads& reads, const DeviceModel& device);

// Returns that shape first, then others that are not much slower, by their time: tuning tries these.
std::vector<TileShape> RankTileShapes(int64_t rows, int64_t vectors, const TileReads& reads, const DeviceModel& device);

// Ranks shapes one vector wide, whose rows, `row_stride` apart, slide along `taps` of a reduction that are `tap_stride`
// apart. Each vector of the rows' operand is loaded once, and the other operand's values for all taps (`weighted`) stay
// in registers.
std::vector<TileShape> RankSlidingShapes(int64_t rows, int64_t taps, int64_t row_stride, int64_t tap_stride,
                                         bool weighted, const DeviceModel& device);

// Ranks those shapes of RankTileShapes whose vectors divide `vectors`.
std::vector<TileShape> WholeTileShapes(int64_t rows, int64_t vectors, const TileReads& reads,
                                       const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_TILE_SHAPE_H_
