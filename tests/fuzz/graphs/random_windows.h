// Chains of windows over small images, whatever they are: convolutions, depthwise and transposed ones, pooling, with maps
// between them, and values that are read again further on.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_RANDOM_WINDOWS_H_
#define FUSION_TESTS_FUZZ_GRAPHS_RANDOM_WINDOWS_H_

#include <cstdint>

#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Kernels, strides, dilations and padding on each side are drawn, and padding may exceed the image. Returns the same
// graph for the same seed. Constants are fillings, as those of RandomGraph.
ecg::Graph RandomWindows(uint64_t seed);

// Does the graph consist of few operators, of which at least two reduce windows and no value is bounded or repeated?
bool IsChainOfWindows(const ecg::Graph& graph);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_RANDOM_WINDOWS_H_
