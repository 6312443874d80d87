// Which steps may run row by row (RowNest in kernel.h). The scheduler forms nests by this check, and Verify holds every
// kernel against it.
#ifndef FUSION_COMPILER_MOVEMENT_ROW_NEST_H_
#define FUSION_COMPILER_MOVEMENT_ROW_NEST_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Where the steps of a row nest reach a buffer: element `stride` · row + `rest` with 0 ≤ rest ≤ `last`, beside a part
// that only tasks move. A row is a point of the nest's loops.
struct RowAccess {
  std::vector<int64_t> strides;  // by loop of the nest, outermost first
  te::Index task;                // what the grid's axes add, the same for all accesses
  int64_t last = 0;              // the largest `rest`
  bool one_element = false;      // every access is to the same element of its row
};

// How the steps of a nest reach a buffer that one of them stores and another one reads or stores. nullopt: some row
// reaches what another row may reach.
std::optional<RowAccess> RowAccessOf(const Phase& phase, const RowNest& nest, int buffer);

// Checks that running the nest's steps row by row computes the same as one step after another. FAILED_PRECONDITION, in
// words for people, where it may not:
// - Each step is a loop nest without a tile, of which the first loops are the nest's. A team of work-items computes no
//   general reduction.
// - Each buffer through which one step hands something to another is reached by each row in elements of its own; or it
//   lives in registers; or, without a team, it is scratch of one row, which each row fills before it reads it and no other step
//   reaches.
absl::Status CheckRowNest(const Kernel& kernel, const Phase& phase, const RowNest& nest);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_ROW_NEST_H_
