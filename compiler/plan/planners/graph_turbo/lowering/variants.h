// Ways to run a model on one cluster that are compared with each other: baselines, and GraphTurbo with its mechanisms
// switched on one after the other (OSDI 2023, section 5.3).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_VARIANTS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_VARIANTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/plan/planners/graph_turbo/lowering/lower.h"

namespace fusion::graph_turbo {

// Names of variants:
//   tvm_like      each layer as a whole, results in DDR
//   astitch_like  each layer as a whole, results in the LBs, else in DDR
//   llb           each layer as a whole, results in the GB, else in DDR (Figure 15, first)
//   l1            each layer as a whole, results in the LBs, else in the GB, else in DDR (second)
//   instances     layers of instances in the order of the plan, a sync after each (third)
//   graph_turbo   the same, and layers overlap (fourth)
const std::vector<std::string>& VariantNames();

// The steps of a variant. A plan is made only where the variant needs one. INVALID_ARGUMENT lists the names.
absl::StatusOr<std::vector<Step>> StepsOfVariant(const OpGraph& graph, const std::string& variant,
                                                 const Cluster& cluster);

// Are its steps those of a plan's instances? All such variants of a graph have the same steps, and all others, too.
absl::StatusOr<bool> HasInstances(const std::string& variant);

// Are programs of both variants the same, if their steps are?
absl::StatusOr<bool> EqualButForSteps(const std::string& variant, const std::string& other);

// `machine` is of one cluster. `steps` are the variant's. Without `instructions`: LowerOptions.
absl::StatusOr<LoweredProgram> LowerSteps(const OpGraph& graph, const std::vector<Step>& steps,
                                          const std::string& variant, const dsa::Machine& machine, DType dtype,
                                          bool instructions = true);
absl::StatusOr<LoweredProgram> LowerVariant(const OpGraph& graph, const std::string& variant, const Cluster& cluster,
                                            const dsa::Machine& machine, DType dtype);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_VARIANTS_H_
