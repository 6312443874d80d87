// Lowers a sequence of parts of layers to a program of an accelerator's instructions (runtime/devices/dsa_sim) for one
// cluster: GraphTurbo, OSDI 2023, section 4. README.md says how.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/planners/graph_turbo/lowering/lowered_program.h"
#include "compiler/plan/planners/graph_turbo/lowering/sequence.h"
#include "runtime/devices/dsa_sim/machine.h"

namespace fusion::graph_turbo {

// One cluster of the machine, with its share of DDR's rate: all clusters do the same on other parts of the batch.
dsa::Machine OneCluster(const dsa::Machine& machine);

// `machine` is of one cluster. UNIMPLEMENTED for a machine of which a core lacks an LB, a matrix or a vector unit;
// RESOURCE_EXHAUSTED names a layer of which not even the smallest tile fits an LB.
absl::StatusOr<LoweredProgram> LowerToProgram(const OpGraph& graph, const std::vector<Step>& steps,
                                              const dsa::Machine& machine, const LowerOptions& options);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_LOWER_H_
