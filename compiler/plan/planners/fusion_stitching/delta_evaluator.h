// The delta evaluator: what a pattern saves, without scheduling it (FusionStitching §5.4).
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_DELTA_EVALUATOR_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_DELTA_EVALUATOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"

namespace fusion {

using Pattern = std::vector<int>;  // vertices, ascending

// The terms of Eq. 3, in nanoseconds.
struct Delta {
  double reduced_mem = 0, reduced_calls = 0, penalty = 0;
  double Score() const { return reduced_mem + reduced_calls - penalty; }
};

class DeltaEvaluator {
 public:
  // Both must outlive the evaluator. `device` has typical rates.
  DeltaEvaluator(const KernelGraph& graph, const DeviceModel& device) : graph_(graph), device_(device) {}

  // Nothing for what cannot be one kernel: a compute-intensive vertex, a cycle, more operators than are scheduled at
  // once, an intermediate result of which a task's part does not fit block scope.
  std::optional<Delta> Evaluate(const Pattern& pattern) const;

  int64_t evaluations() const { return evaluations_; }

 private:
  const KernelGraph& graph_;
  const DeviceModel& device_;
  mutable int64_t evaluations_ = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_DELTA_EVALUATOR_H_
