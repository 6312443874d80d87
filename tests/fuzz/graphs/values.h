// The data that random graphs run on; the graph's text determines all of it.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Draws values that are hostile, but exact if arithmetic can be: small integers, eighths, ties, zeros of both signs,
// and sometimes values of very different magnitudes, infinities, NaN and the limits of the integer types.
Tensor DrawTensor(DType dtype, const Shape& shape, uint64_t seed);

// Repeats the 8 bytes of `seed`, which are all that the text form of a large constant keeps.
Tensor FilledTensor(DType dtype, const Shape& shape, uint64_t seed);

// Replaces every constant that the text form prints as a filling by DrawTensor(filling).
ecg::Graph Materialise(const ecg::Graph& graph);

// Returns the data for a graph's input of this name. The name may tell what its elements are, for indices, counts and
// scales: `…_positive`, or `…_belowN` (integers in [0, N)).
Tensor DrawInput(const std::string& name, DType dtype, const Shape& shape);

// Draws one tensor per input from the input's name, so that a smaller graph runs on the same data.
std::vector<Tensor> DrawInputs(const ecg::Graph& graph);

// Are the shapes equal, and all elements bit for bit?
bool SameTensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_VALUES_H_
