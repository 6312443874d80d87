// Derives run-time extents of any operator's outputs from its lowering.
#ifndef FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_
#define FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::onnx_import {

struct Propagated {
  std::vector<std::vector<ecg::ValueId>> outputs;  // extents of each output; kNone where static
  // Parallel to the inputs: the scalar that an input must hold past its extents; an empty tensor where it does not
  // matter.
  std::vector<Tensor> masks;
};

// `alone` is a graph of one node whose inputs have `extents` (parallel to the node's inputs; each is empty or has one
// entry per dimension; equal ids mean equal numbers).
//
// Every element of an output must depend only on elements before the extents:
//   - Each load reads a dynamic dimension at a plain axis of the result (which then has that extent), at a constant, or
//     at a reduction axis. The masks past the extents must then be identities of every reduction.
//   - No extent may enter as a number (a mean's divisor, a concatenation's offset): lowered for larger bounds, the
//     expressions must stay the same.
// Otherwise returns UNIMPLEMENTED naming node, dimension and reason.
absl::StatusOr<Propagated> PropagateExtents(const ecg::Graph& alone,
                                            const std::vector<std::vector<ecg::ValueId>>& extents);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_PROPAGATE_EXTENTS_H_
