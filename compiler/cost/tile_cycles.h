// Costs one reduction step of a register tile by the ports of a core and the sets of its nearest cache: exact enough to
// rank tile shapes.
#ifndef FUSION_COMPILER_COST_TILE_CYCLES_H_
#define FUSION_COMPILER_COST_TILE_CYCLES_H_

#include <cstdint>

#include "compiler/cost/device_model.h"

namespace fusion {

// The reads of a tile in a step.
struct TileReads {
  // Each row multiplies by one broadcast element; otherwise each loads its own vectors (depthwise).
  bool broadcast = false;
  bool shared = false;  // the rows share one row of vectors
  // Bytes from a row's broadcast element to that of the next row; 0 where rows do not lie at equal distances, or where
  // the next steps read other lines.
  int64_t row_stride = 0;
};

// The number of `rows` rows, `stride` bytes apart, whose lines push each other out of the nearest cache before the next
// step reads them again: those of sets with fewer ways than rows. The place within a page decides on the set.
int64_t ConflictingRows(const PortModel& ports, int64_t line_bytes, int64_t rows, int64_t stride);

// Cycles of one step with rows × vectors accumulators. Counts their FMAs, their loads, the latency that too few
// accumulators leave uncovered, and what comes from the second-level cache: shared vectors and lines of conflicting
// rows.
double TileCycles(const DeviceModel& device, int64_t rows, int64_t vectors, const TileReads& reads);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_TILE_CYCLES_H_
