#include "compiler/plan/planners/fusion_stitching/fusion_stitching.h"

#include <vector>

#include "compiler/cost/typical_core.h"
#include "compiler/plan/operator_kind.h"
#include "compiler/plan/planners/fusion_stitching/beam_search.h"
#include "compiler/plan/planners/fusion_stitching/delta_evaluator.h"
#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"
#include "compiler/plan/planners/fusion_stitching/pattern_reduction.h"
#include "compiler/plan/planners/fusion_stitching/stitcher.h"
#include "compiler/plan/planners/xla_like/xla_like.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

class FusionStitching : public Planner {
 public:
  const char* name() const override { return "fusion_stitching"; }
  bool WantsOpened() const override { return true; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    const DeviceModel typical = WithTypicalRates(device);  // the same at every registration of a device
    const std::vector<OperatorTraits> traits = TraitsOf(graph);
    ASSIGN_OR_RETURN(const FusionPlan xla, FuseLikeXla(graph, traits, oracle, options));
    ASSIGN_OR_RETURN(const KernelGraph kernels, KernelGraph::Make(graph, traits, xla, oracle, options));
    const DeltaEvaluator evaluator(kernels, typical);
    ASSIGN_OR_RETURN(const auto candidates, CandidatePatterns(kernels, evaluator, options.cancelled));
    ASSIGN_OR_RETURN(const auto plans, SearchPlans(kernels, candidates, options.cancelled));
    Stitcher stitcher(graph, traits, xla, kernels, evaluator, oracle, options);
    ASSIGN_OR_RETURN(std::vector<Stitched> chosen, stitcher.Best(plans));
    RETURN_IF_ERROR(stitcher.Confirm(&chosen));
    RETURN_IF_ERROR(stitcher.FitTogether(&chosen));
    return stitcher.Finish(chosen);
  }
};

}  // namespace

const Planner* FusionStitchingPlanner() {
  static const auto* const kPlanner = new FusionStitching;
  return kPlanner;
}

}  // namespace fusion
