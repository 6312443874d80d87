// The passes from a model to the graph that is planned. passes.cc has their order and the reasons for it.
#ifndef FUSION_COMPILER_PIPELINE_GRAPH_PASSES_H_
#define FUSION_COMPILER_PIPELINE_GRAPH_PASSES_H_

#include "absl/status/status.h"
#include "compiler/pipeline/compilation.h"

namespace fusion::passes {

// Reads the model's file, or takes the graph that is given instead.
absl::Status Import(Compilation* compilation);
// Simplifies, and leaves constants narrow where a node only widens them.
absl::Status SimplifyNarrow(Compilation* compilation);
absl::Status Rewrite(Compilation* compilation);
absl::Status Simplify(Compilation* compilation);
// Stores f32 values as f16 (precision_pass.h) and simplifies the casts.
absl::Status StoreHalves(Compilation* compilation);
absl::Status ShareConstants(Compilation* compilation);
// Would a value that moves with a loop begin where the device's kernels could not read whole vectors?
bool HasUnalignedLoops(const Compilation& compilation);
absl::Status UnrollLoops(Compilation* compilation);
absl::Status SeparateLoopValues(Compilation* compilation);
// Keeps kernels from contracting products of one operator with sums of another (compiler/rewrite/round_products.h).
absl::Status RoundProducts(Compilation* compilation);
bool RoundsLikeOperators(const Compilation& compilation);
absl::Status MergeSlices(Compilation* compilation);
absl::Status OpenIndices(Compilation* compilation);
// Opens composites, so that the planner can cut inside them.
absl::Status OpenForPlanner(Compilation* compilation);
bool PlannerWantsOpened(const Compilation& compilation);

}  // namespace fusion::passes

#endif  // FUSION_COMPILER_PIPELINE_GRAPH_PASSES_H_
