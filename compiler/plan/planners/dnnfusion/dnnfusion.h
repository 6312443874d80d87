// The planner `dnnfusion`: DNNFusion §4.3, Listing 1. Seeds are One-to-One operators, smallest intermediate result
// first. A fusion block grows from its seed along successors, then along predecessors, as Table 3
// (compiler/plan/mapping_table.h), the quotient graph and the oracle allow. README.md lists where it departs from the
// paper.
//
// Each step asks the cheapest question first: Table 3, then convexity, then FusionOracle::Fit, and a latency
// only for yellow combinations that all the others accept. Planning is deterministic given the oracle's answers. It
// fails with CANCELLED when `PlanOptions::cancelled` says so, or with the error of FusionOracle::Compare.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_DNNFUSION_DNNFUSION_H_
#define FUSION_COMPILER_PLAN_PLANNERS_DNNFUSION_DNNFUSION_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* DnnFusionPlanner();
// `dnnfusion-listing`: the order of the listing alone. It leaves out "epilogues first", the other edges that wait, and
// everything beyond Table 3 (README.md).
const Planner* DnnFusionListingPlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_DNNFUSION_DNNFUSION_H_
