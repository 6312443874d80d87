// Which places of a ring (Ring in kernel.h) a step's addresses reach, in each of its turns.
#ifndef FUSION_COMPILER_MOVEMENT_RING_PLACES_H_
#define FUSION_COMPILER_MOVEMENT_RING_PLACES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// The rows of a ring's tensor that `rows` names in a turn: [first, last), clipped to the tensor.
struct RowRange {
  int64_t first = 0, last = 0;
};
RowRange RowsInTurn(const RingRows& rows, const Turn& turn, int64_t number, const Ring& ring);

// Checks that a step inside a task loop reaches, in each turn, only places of the rows that it says it reads or writes,
// that it writes to the place of each row that it says it writes, and that every access stays in its row and its plane.
// Conditions on the way to a load count, as do the limits of loops and stores. INTERNAL, in words for people,
// otherwise, and where an address cannot be followed: it depends on data, or has too many points.
absl::Status CheckRingPlaces(const Kernel& kernel, const Step& step);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_RING_PLACES_H_
