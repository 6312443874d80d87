// What an operator's lowering says of run-time extents, for any operator.
#ifndef FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_
#define FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::onnx_import {

struct Propagated {
  std::vector<std::vector<ecg::ValueId>> outputs;  // extents of each output, kNone: static
  // Parallel to the inputs: the scalar that an input must hold past its extents; empty tensors where it does not
  // matter.
  std::vector<Tensor> masks;
};

// `alone` is a graph of one node whose inputs have `extents` (parallel to the node's inputs, empty or one a dimension;
// an id means the same number wherever it stands).
//
// Every element of an output must depend only on elements before the extents: each load reads a dynamic dimension at a
// plain axis of the result (which then has that extent), at a constant, or at a fold's axis, and the masks past the
// extents are then identities of every fold. Nor may an extent enter as a number (a mean's divisor, a concatenation's
// offset): lowered for larger bounds, the expressions must stay the same.
// UNIMPLEMENTED naming node, dimension and reason where it is not so.
absl::StatusOr<Propagated> PropagateExtents(const ecg::Graph& alone,
                                            const std::vector<std::vector<ecg::ValueId>>& extents);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_
