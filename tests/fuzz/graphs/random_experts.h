// Products of weights that data pick: layers of a mixture of experts, with one or two products, and maps, biases and a
// sum over the experts of a token around them.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_EXPERTS_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_EXPERTS_H_

#include <cstdint>

#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Tokens, experts, terms, columns, and how the weights lie are drawn; some weights exceed a core's caches. Returns the
// same graph for the same seed. Constants are fillings, as those of RandomGraph.
ecg::Graph RandomExperts(uint64_t seed);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_EXPERTS_H_
