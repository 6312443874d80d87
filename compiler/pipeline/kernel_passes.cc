#include "compiler/pipeline/kernel_passes.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/pipeline/plan_estimate.h"
#include "compiler/tune/budget.h"
#include "runtime/base/status_macros.h"

namespace fusion::passes {
namespace {

// For people: the operators of a launch, "Conv+Relu".
std::string Label(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) {
  std::vector<std::string> ops;
  for (ecg::NodeId id : nodes) ops.push_back(graph.node(id).op);
  if (ops.size() > 8) {
    const size_t more = ops.size() - 7;
    ops.resize(7);
    ops.push_back(absl::StrCat("… ", more, " more"));
  }
  return absl::StrJoin(ops, "+");
}

}  // namespace

bool MayTune(const Compilation& compilation) {
  const absl::StatusOr<tune::Budget> budget = tune::ParseBudget(compilation.options.tune);
  return budget.ok() && budget->trials > 0;
}

absl::Status Tune(Compilation* compilation) {
  GraphFusionOracle& oracle = *compilation->oracle;
  CompileAccount& account = *compilation->account;
  ASSIGN_OR_RETURN(const tune::Budget budget, tune::ParseBudget(compilation->options.tune));
  ASSIGN_OR_RETURN(account.tuned,
                   oracle.Tune(compilation->planned->KernelFusionBlocks(), compilation->planned->KernelRuns(), budget));
  account.trials = oracle.questions() - account.questions;
  account.questions = oracle.questions();
  account.from_database = oracle.answered(LatencySource::kDatabase);
  account.measured = oracle.answered(LatencySource::kMeasured);
  account.from_model = oracle.estimated();
  return absl::OkStatus();
}

absl::Status Kernels(Compilation* compilation) {
  const Planned& planned = *compilation->planned;
  for (size_t l = 0; l < planned.launches.size(); ++l) {
    const std::vector<size_t>& fusion_blocks = planned.launches[l];
    PlannedLaunch launch;
    launch.concurrent = !planned.concurrent.empty() && planned.concurrent[l];
    for (size_t b : fusion_blocks) {
      const FusionBlock& fusion_block = planned.plan.fusion_blocks[b];
      ASSIGN_OR_RETURN(FusionKernel kernel, compilation->oracle->Kernel(fusion_block));
      RETURN_IF_ERROR(CheckRealised(planned.graph, fusion_block, kernel));
      if (b != fusion_blocks[0] && kernel.key != launch.fusion_kernel.key)
        return absl::InternalError("a batch of different kernels");
      if (b == fusion_blocks[0]) launch.label = Label(planned.graph, fusion_block.Members());
      (b == fusion_blocks[0] ? launch.fusion_kernel : launch.others.emplace_back()) = std::move(kernel);
      for (ecg::NodeId id : fusion_block.Members()) launch.nodes.push_back(planned.graph.node(id).name);
    }
    if (fusion_blocks.size() > 1) absl::StrAppend(&launch.label, " ×", fusion_blocks.size());
    for (const LaunchLoop& loop : planned.loops.launches) {
      if (loop.first <= l && l < loop.end) absl::StrAppend(&launch.label, ", ", loop.trips, " iterations");
    }
    compilation->launches->push_back(std::move(launch));
  }
  compilation->account->estimate_ns = EstimatePlan(*compilation->launches, planned.elided, planned.loops,
                                                   *compilation->context.device, compilation->Units());
  return absl::OkStatus();
}

}  // namespace fusion::passes
