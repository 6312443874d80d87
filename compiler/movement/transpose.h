// Maps whose loads lie along one loop and whose stores along another: blocks of as many rows as a vector has lanes are
// loaded along the one, transposed in registers, and stored along the other. The one table that schedules choose by and
// printers rely on.
#ifndef FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_
#define FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Can `body`, stored contiguously along `lane` as `stored`, be computed in blocks transposed from `across`: every load
// along `lane` is contiguous, still, or an f32 that is contiguous along `across`, and one of the latter is there? Or is
// it nothing but such a load, of another type whose bits a vector can hold?
bool CanTranspose(const te::Scalar& body, DType stored, const te::Axis& lane, const te::Axis& across, int64_t lanes);

// `inside` is one load whose bits are moved as they are: of a type that has no vector of floats.
bool MovesBits(const te::Scalar& inside, DType stored);
// Rows and lanes of a block: those of a vector of 32-bit elements, but never less than 16 bytes.
int64_t TransposedBlock(DType dtype, int64_t lanes);

// The value inside the test that a copy has at its border (`if address < size then load else 0`), where comparisons
// are affine along both loops, so that a block is inside if its corners are; else `body` itself.
const te::Scalar& InsideBorder(const te::Scalar& body, int lane_axis, int across_axis);

// Loads that are not contiguous along `lane_axis`, each once.
std::vector<const te::ScalarNode*> LoadsAcross(const te::Scalar& body, int lane_axis, int64_t lanes);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_TRANSPOSE_H_
