// The planner `souffle` (Xia et al., "Optimizing Deep Learning Inference via Global Analysis and Tensor Expressions",
// ASPLOS 2024): the whole model is one program, which is cut at compute-intensive expressions. README.md in this folder
// says which of the paper's mechanisms are where, and where the planner departs from it.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_SOUFFLE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_SOUFFLE_H_

#include "compiler/plan/plan.h"

namespace fusion {

// Cuts where the price says so.
const Planner* SoufflePlanner();
// "souffle-paper": cuts where the paper's resource check binds, `max_grid · max_occ < C`.
const Planner* SoufflePaperPlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_SOUFFLE_SOUFFLE_H_
