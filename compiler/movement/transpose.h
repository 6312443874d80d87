// Blocked transpose: maps whose loads lie along one loop and whose stores lie along another. Tiles of as many rows as a
// vector has lanes are loaded along the one loop, transposed in registers, and stored along the other. Schedules
// choose, and printers rely on, this one table.
#ifndef FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_
#define FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Can `body`, stored contiguously along `lane` as `stored`, be computed in tiles transposed from `across`? It can
// - if every load is contiguous along `lane`, does not move with it, or is an f32 contiguous along `across`, and there
//   is one of the last kind,
// - or if it is a single load of the last kind, of another type whose bits a vector can hold.
bool CanTranspose(const te::Scalar& body, DType stored, const te::Axis& lane, const te::Axis& across, int64_t lanes);

// Is `inside` one load of a type without a vector of floats, whose bits are moved as they are?
bool MovesBits(const te::Scalar& inside, DType stored);
// Rows and lanes of a tile: those of a vector of 32-bit elements, but never less than 16 bytes.
int64_t TransposedBlock(DType dtype, int64_t lanes);

// The value inside the test that a copy has at its border (`if address < size then load else 0`), where the comparisons
// are affine along both loops, so that a tile is inside if its corners are; otherwise `body` itself.
const te::Scalar& InsideBorder(const te::Scalar& body, int lane_axis, int across_axis);

// Loads that are not contiguous along `lane_axis`; each once.
std::vector<const te::ScalarNode*> LoadsAcross(const te::Scalar& body, int lane_axis, int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_
