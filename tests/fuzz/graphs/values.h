// The data that random graphs run on, all of it determined by the graph's text.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Hostile, but exact where arithmetic can be: small integers, eighths, ties, zeros of both signs, now and then values
// far apart, infinities, NaN and the limits of the integer types.
Tensor DrawTensor(DType dtype, const Shape& shape, uint64_t seed);

// The 8 bytes of `seed` over and over: what the text form of a large constant keeps.
Tensor FilledTensor(DType dtype, const Shape& shape, uint64_t seed);

// The graph with DrawTensor(filling) in place of every constant that the text form prints as a filling.
ecg::Graph Materialise(const ecg::Graph& graph);

// What a graph's input of this name holds. The name may say what its elements are: `…_positive`, or `…_belowN`
// (integers of [0, N)), as indices, counts and scales must be.
Tensor DrawInput(const std::string& name, DType dtype, const Shape& shape);

// One tensor an input, drawn from the input's name, so that a smaller graph runs on the same data.
std::vector<Tensor> DrawInputs(const ecg::Graph& graph);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_
