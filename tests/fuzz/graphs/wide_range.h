// Where rounding does not decide, but the range of f32 does: a rule that moves a factor of up to 2^16 may keep a value
// finite that overflows in the source by less than 2^17 (compiler/rewrite/README.md, "Edge").
#ifndef FUSION_TESTS_FUZZ_GRAPHS_WIDE_RANGE_H_
#define FUSION_TESTS_FUZZ_GRAPHS_WIDE_RANGE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// Returns the graph's outputs, cut to their extents, as a machine computes them whose floats have the precision of f64
// and overflow from 2^145 on instead of 2^128; those of f32 are f64. Fails where an operator has no f64 form.
absl::StatusOr<std::vector<Tensor>> RunInWideRange(const ecg::Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_WIDE_RANGE_H_
