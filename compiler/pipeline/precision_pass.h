// Precision: chooses the element types that values have in memory.
#ifndef FUSION_COMPILER_PIPELINE_PRECISION_PASS_H_
#define FUSION_COMPILER_PIPELINE_PRECISION_PASS_H_

#include "compiler/ecg/graph.h"

namespace fusion {

// Returns the graph with f16 in place of f32 wherever an operator accepts it, weights included.
// - Operators of f16 compute and accumulate in f32 and round what they store (compiler/ops/README.md), so kernels move
//   half the bytes and nothing else changes.
// - Inputs and outputs of the graph keep their types. An operator that does not suit f16 (its types, or no lowering)
//   keeps f32 and has casts around it.
// - Constants beyond the range of f16 become its largest value, so that a mask with the most negative float stays
//   finite.
ecg::Graph StoreAsHalves(const ecg::Graph& graph);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PRECISION_PASS_H_
