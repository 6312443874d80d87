// Rows and vectors of an accumulator tile, by the device's ports: two FMAs and two loads a cycle; accumulators cover
// the FMA latency; accumulators, one row of vectors and one broadcast fit the registers.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_SHAPE_H_
#define FUSION_COMPILER_SCHEDULE_TILE_SHAPE_H_

#include <cstdint>
#include <vector>

#include "compiler/cost/device_model.h"

namespace fusion {

struct TileShape {
  int rows = 1;
  int vectors = 1;
  double cycles_per_step = 0;  // of a step of the fold, for all rows and vectors that there are
};

// The shape with the least time for `rows` and `vectors` in all. `has_broadcast`: an operand moves with the rows alone;
// `has_shared`: one with the vectors alone.
TileShape ChooseTileShape(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                          const DeviceModel& device);

// The same, best first, then others that are not far behind, by their time: what tuning tries.
std::vector<TileShape> RankTileShapes(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                                      const DeviceModel& device);

// One vector wide, where rows `row_stride` apart slide along `taps` of a fold that are `tap_stride` apart: each vector
// of their operand is loaded once, and the other operand's values of all taps (`weighted`) stay in registers.
std::vector<TileShape> RankSlidingShapes(int64_t rows, int64_t taps, int64_t row_stride, int64_t tap_stride,
                                         bool weighted, const DeviceModel& device);

// Of these, those whose vectors divide `vectors`.
std::vector<TileShape> WholeTileShapes(int64_t rows, int64_t vectors, bool has_broadcast, bool has_shared,
                                       const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_SHAPE_H_
