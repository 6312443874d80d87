// The reads of a register tile in a step of its reduction.
#ifndef FUSION_COMPILER_MOVEMENT_TILE_READS_H_
#define FUSION_COMPILER_MOVEMENT_TILE_READS_H_

#include "compiler/cost/tile_cycles.h"
#include "compiler/te/program/program.h"

namespace fusion::movement {

// The reads of a tile whose vectors run along the axis `lane` and whose rows run along `row` (ids; -1: there is none).
// `body`: of the reduction.
TileReads ReadsOfTile(const te::Scalar& body, const te::Reduction& reduction, int lane, int row);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_TILE_READS_H_
