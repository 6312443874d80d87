// The last steps of the planner: patterns become kernels (FusionStitching §5.3), or stay the kernels of `xla_like`.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_STITCHER_H_
#define FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_STITCHER_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/plan/operator_kind.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/planners/fusion_stitching/delta_evaluator.h"
#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"
#include "compiler/plan/planners/fusion_stitching/pattern_reduction.h"

namespace fusion {

// A pattern as a kernel.
struct Stitched {
  Pattern pattern;
  std::vector<HandOver> inner;  // the grouping: expensive maps that are sub-roots are kept in scratch
  std::vector<Directive> directives;
  double fused_ns = 0, apart_ns = 0;
  LatencySource source = LatencySource::kModel;
};

// The kernels that a pattern becomes: itself, or its parts where it cannot be one kernel or is no faster.
struct Settled {
  std::vector<Stitched> kernels;  // of two or more vertices
  double saved_ns = 0;
};

class Stitcher {
 public:
  Stitcher(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits, const FusionPlan& xla,
           const KernelGraph& kernels, const DeltaEvaluator& evaluator, FusionOracle& oracle,
           const PlanOptions& options)
      : graph_(graph),
        traits_(traits),
        xla_(xla),
        kernels_(kernels),
        evaluator_(evaluator),
        oracle_(oracle),
        options_(options) {}

  // The latency evaluator's choice among plans (§5.3). Fails with CANCELLED.
  absl::StatusOr<std::vector<Stitched>> Best(const std::vector<std::vector<Pattern>>& plans);
  // Asks for latencies where they may differ from the estimates, and leaves out what is slower.
  absl::Status Confirm(std::vector<Stitched>* chosen);
  // Leaves out, or groups anew, what cannot be a kernel beside the others: which of several kernels owns a node that
  // all of them compute is known of the whole plan only, and the others' schedules are another question.
  absl::Status FitTogether(std::vector<Stitched>* chosen);
  absl::StatusOr<FusionPlan> Finish(const std::vector<Stitched>& chosen) const;

 private:
  absl::StatusOr<Settled> Settle(const Pattern& pattern);
  // `fusion_block`: the pattern's, of which nothing is asked yet.
  absl::StatusOr<Stitched> FastestGrouping(const Pattern& pattern, FusionBlock fusion_block) const;
  // The fusion blocks of the plan, in order, with what the stitched ones ask for.
  absl::StatusOr<std::vector<FusionBlock>> Cover(const std::vector<Stitched>& chosen) const;
  absl::StatusOr<FusionBlockAccount> FitOneTask(FusionBlock* fusion_block) const;
  FusionBlock FusionBlockOf(const Pattern& pattern) const;
  // Cuts the pattern, in topological order, where the delta evaluator says that least is lost. Nothing if no cut is
  // allowed: then its vertices stay apart.
  std::optional<std::pair<Pattern, Pattern>> Cut(const Pattern& pattern) const;
  // Below 0: the pattern is better apart.
  double SavedNs(const Stitched& stitched) const;
  FusionComparison Ways(const Stitched& stitched) const;
  absl::Status Cancelled() const {
    return options_.cancelled && options_.cancelled() ? absl::CancelledError("planning was cancelled")
                                                      : absl::OkStatus();
  }

  const ecg::Graph& graph_;
  const std::vector<OperatorTraits>& traits_;
  const FusionPlan& xla_;  // its fusion blocks are the vertices
  const KernelGraph& kernels_;
  const DeltaEvaluator& evaluator_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  std::map<Pattern, Settled> settled_;
  std::map<Pattern, std::string> refused_;  // why it is no kernel
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_FUSION_STITCHING_STITCHER_H_
