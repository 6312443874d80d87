// Runs a lowered program on the simulator with the numbers of a graph.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_RUN_PROGRAM_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_RUN_PROGRAM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/planners/graph_turbo/lowering/lower.h"
#include "runtime/devices/dsa_sim/timing.h"

namespace fusion::graph_turbo {

struct ProgramRun {
  std::vector<fusion::Tensor> outputs;  // parallel to graph.outputs()
  dsa::Timing timing;
};

// `inputs` are parallel to graph.inputs(), from which `op_graph` was made. The simulator checks the program first. An
// output that no layer makes is UNIMPLEMENTED.
absl::StatusOr<ProgramRun> RunProgram(const ecg::Graph& graph, const OpGraph& op_graph, const LoweredProgram& lowered,
                                      const dsa::Machine& machine, const std::vector<fusion::Tensor>& inputs);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_RUN_PROGRAM_H_
