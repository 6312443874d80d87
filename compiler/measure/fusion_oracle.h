// Answers the planners' questions about candidate fusion blocks: can this be one kernel, and how long does it take?
// Kernels come from the kernel cache and latencies from LatencyAnswers, both of which remember, so a planner may repeat
// a question freely. This unit knows only what a comparison means: sequences of kernels that are measured beside each
// other.
#ifndef FUSION_COMPILER_MEASURE_FUSION_ORACLE_H_
#define FUSION_COMPILER_MEASURE_FUSION_ORACLE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"
#include "compiler/kernels/kernel_cache.h"
#include "compiler/measure/latency_answers.h"
#include "compiler/measure/plan_price.h"
#include "compiler/plan/plan.h"
#include "compiler/tune/budget.h"

namespace fusion {

// Serves one compilation; not thread-safe. `context` must outlive it.
class GraphFusionOracle : public FusionOracle {
 public:
  // `disabled_passes`: see ScheduleOptions.
  GraphFusionOracle(const CompileContext& context, int threads, std::set<std::string> disabled_passes = {})
      : context_(context), kernels_(threads, std::move(disabled_passes)), answers_(context, threads) {}

  // From here on, measuring what planners ask takes at most about this many seconds. Answers that are not known by
  // then, and that would not be measured in time, are estimated. Tune spends no more than the rest. `clock` returns
  // seconds; empty: the system's clock.
  void LimitMeasuring(double seconds, std::function<double()> clock = {}) {
    answers_.LimitMeasuring(seconds, std::move(clock));
  }

  // Call it before the first question. Both must outlive the oracle's use.
  void Start(const ecg::Graph* graph, const ValueLayouts* layouts) {
    kernels_.Start(graph, layouts, context_.device);
    answers_.Start(&kernels_.typical());
    pricer_.emplace(kernels_.typical(), kernels_.threads());
  }

  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override;
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>& maybe) override;
  double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override;
  // The kernels are those that Get returns, and rates are typical ones.
  absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph& graph,
                                            const std::vector<FusionBlock>& fusion_blocks) override;
  absl::StatusOr<bool> Knows(const ecg::Graph& graph, const FusionComparison& question) override;
  int Devices() const override { return context_.oracle->Devices(); }

  absl::StatusOr<FusionKernel> Kernel(const FusionBlock& fusion_block);
  // Accounts for a kernel that this oracle has returned.
  FusionBlockAccount Account(const FusionKernel& kernel) const {
    return AccountOf(kernel, kernels_.typical(), kernels_.threads());
  }
  // Returns the cost model's estimate for a fusion block of the plan.
  double Estimate(const FusionBlock& fusion_block) { return kernels_.EstimateNs(fusion_block); }
  using KernelOr = KernelCache::KernelOr;
  KernelOr Get(const FusionBlock& fusion_block) { return kernels_.Get(fusion_block); }

  // Tries schedules for the kernels of `blocks` (fusion_tuning.h) and makes Kernel() return the fastest. Returns how
  // many fusion blocks got another kernel. `runs`, parallel to `blocks`, is how often a run of the model launches each.
  absl::StatusOr<int64_t> Tune(const std::vector<FusionBlock>& fusion_blocks, const std::vector<int64_t>& runs,
                               const tune::Budget& budget);

  int64_t questions() const { return answers_.questions(); }
  int64_t answered(LatencySource source) const { return answers_.answered(source); }
  // Counts answers with the model's estimate: nobody could measure, or measuring failed.
  int64_t estimated() const { return answered(LatencySource::kModel) + answered(LatencySource::kFailed); }

 private:
  // A question for each of the ways. They form a group of their own.
  absl::StatusOr<std::vector<KernelQuestion>> Ways(const FusionComparison& question);

  const CompileContext& context_;
  KernelCache kernels_;
  LatencyAnswers answers_;
  std::optional<PlanPricer> pricer_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_FUSION_ORACLE_H_
