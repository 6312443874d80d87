// Turns the contents of buffers that have upper bounds as extents into tensors of the actual extents.
#ifndef FUSION_TESTS_CONFORMANCE_CUT_TO_EXTENTS_H_
#define FUSION_TESTS_CONFORMANCE_CUT_TO_EXTENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::conformance {

// `all` is parallel to graph.outputs(). Returns the outputs that the model names, each cut to its extents, as a session
// returns them. Fails with OUT_OF_RANGE if an extent exceeds its bound.
absl::StatusOr<std::vector<Tensor>> CutToExtents(const ecg::Graph& graph, const std::vector<Tensor>& all);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_CUT_TO_EXTENTS_H_
