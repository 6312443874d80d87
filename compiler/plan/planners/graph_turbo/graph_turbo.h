// The planner `graph_turbo` (Zhao et al., "Effectively Scheduling Computational Graphs of Deep Neural Networks toward
// Their Domain-Specific Accelerators", OSDI 2023), for the caches of a processor: chains of kernels run depth first, a
// part of each after another, where that is faster. README.md in this folder says which of the paper's mechanisms are
// where. On other devices it is `dnnfusion`.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GRAPH_TURBO_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GRAPH_TURBO_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* GraphTurboPlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_GRAPH_TURBO_H_
