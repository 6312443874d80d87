// Writes loops out, for targets that cannot repeat launches and for the interpreter.
#ifndef FUSION_COMPILER_OPS_CONTROL_UNROLL_LOOPS_H_
#define FUSION_COMPILER_OPS_CONTROL_UNROLL_LOOPS_H_

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::ecg {

// Writes every loop out: each iteration has nodes of its own, and slices and stacks are Split and Concat. Returns the
// graph as it is where it has no loops. INTERNAL where FindLoops fails.
absl::StatusOr<Graph> UnrollLoops(const Graph& graph);

}  // namespace fusion::ecg

#endif  // FUSION_COMPILER_OPS_CONTROL_UNROLL_LOOPS_H_
