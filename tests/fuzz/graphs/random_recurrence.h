// Loops that a graph keeps: recurrences with states, slices and stacks, one layer behind another or beside it.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_RECURRENCE_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_RECURRENCE_H_

#include <cstdint>

#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Most values that move with a loop are whole lines of a cache, so that targets which need that keep the loop; a few
// are not. A state may be swapped with another one, kept, or replaced by a slice. Returns the same graph for the same
// seed. Constants are fillings, as those of RandomGraph.
ecg::Graph RandomRecurrence(uint64_t seed);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_RECURRENCE_H_
