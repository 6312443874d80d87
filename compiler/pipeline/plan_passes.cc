#include "compiler/pipeline/plan_passes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/derived.h"
#include "compiler/choose_layouts/choose_layouts.h"
#include "compiler/launch/batch_launches.h"
#include "compiler/launch/concurrent_launches.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/plan/mapping_table.h"
#include "runtime/base/status_macros.h"

namespace fusion::passes {
namespace {

// The least time that the whole graph can take: each operator runs at the device's peak or from its fastest memory.
double LeastNs(const ecg::Graph& graph, const DeviceModel& device, int threads) {
  const double units = std::max(1, std::min(threads, device.parallel_units));
  double bandwidth = 1e9;
  for (const MemoryLevel& level : device.memory) bandwidth = std::max(bandwidth, level.bandwidth_bytes_per_s);
  double seconds = 0;
  for (const ecg::Node& node : graph.nodes()) {
    double bytes = 0;
    for (ecg::ValueId v : node.outputs) {
      if (v != ecg::kNone) bytes += static_cast<double>(ecg::ValueBytes(graph.value(v)));
    }
    seconds += std::max(ops::NodeFlops(graph, node) / device.fma_f32_flops_per_s, bytes / bandwidth) / units;
  }
  return 1e9 * seconds;
}

// Fraction of that time below which the cost model decides: a measurement would cost more than it could gain.
constexpr double kNegligible = 1e-4;

// The seconds of the planners that a planner runs: passes "plan: dnnfusion" of the account.
class PartsClock {
 public:
  explicit PartsClock(Compilation* compilation) : compilation_(compilation) {}
  ~PartsClock() { End(); }
  void Begin(const std::string& part) {
    End();
    part_ = part;
    start_ = std::chrono::steady_clock::now();
    compilation_->clock->Report(0, 0, absl::StrCat("planning fusion: ", part));
  }

 private:
  void End() {
    if (part_.empty()) return;
    compilation_->account->passes.push_back({absl::StrCat("plan: ", part_), StageClock::SecondsSince(start_)});
    part_.clear();
  }

  Compilation* const compilation_;
  std::string part_;  // empty: none runs
  std::chrono::steady_clock::time_point start_;
};

absl::StatusOr<std::vector<std::shared_ptr<const BlockKernel>>> KernelsOf(Compilation* compilation) {
  std::vector<std::shared_ptr<const BlockKernel>> kernels;
  for (const FusionBlock& block : compilation->planned->plan.blocks) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), compilation->oracle->Get(block));
  }
  return kernels;
}

absl::Status MakeLaunches(BatchKernels which, Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  planned.launches = fusion::BatchLaunches(kernels, planned.elided, *compilation->context.device, which);
  return absl::OkStatus();
}

}  // namespace

bool SharesMemory(const Compilation& compilation) { return compilation.context.device->SharesHostMemory(); }

absl::Status Layout(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(planned.layouts,
                   ChooseLayouts(planned.graph, compilation->context.device->WithTypicalRates(), compilation->Units()));
  return absl::OkStatus();
}

absl::Status Plan(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  const CompileContext& context = compilation->context;
  compilation->oracle->Start(&planned.graph, &planned.layouts);
  if (compilation->given != nullptr) {
    planned.plan = *compilation->given;
    return absl::OkStatus();
  }
  PlanOptions options;
  options.cancelled = context.cancelled;
  options.beyond_table = !compilation->options.disabled_passes.count("beyond-table");
  options.negligible_ns =
      kNegligible * LeastNs(planned.graph, context.device->WithTypicalRates(), compilation->Units());
  ASSIGN_OR_RETURN(const ModelError error, context.oracle->Error());
  options.trusted_factor = TrustedFactor(error);
  options.progress = [&](int64_t done, int64_t total) { compilation->clock->Report(done, total, "planning fusion"); };
  PartsClock parts(compilation);
  options.begin = [&](const std::string& part) { parts.Begin(part); };
  const Planner* planner = FindPlanner(compilation->options.planner);
  ASSIGN_OR_RETURN(planned.plan, planner->Plan(planned.graph, *context.device, *compilation->oracle, options));
  return absl::OkStatus();
}

absl::Status ElideCopies(Compilation* compilation) {
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  compilation->planned->elided = fusion::ElideCopies(compilation->planned->graph, kernels);
  return absl::OkStatus();
}

absl::Status Launches(Compilation* compilation) {
  if (SharesMemory(*compilation)) return MakeLaunches(BatchKernels::kNone, compilation);
  Planned& planned = *compilation->planned;
  for (size_t b = 0; b < planned.plan.blocks.size(); ++b) planned.launches.push_back({b});
  return absl::OkStatus();
}

absl::Status BatchLaunches(Compilation* compilation) {
  return MakeLaunches(BatchKernels::kThatLeaveUnitsIdle, compilation);
}

absl::Status ConcurrentLaunches(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  LaunchOrder order = GroupConcurrentLaunches(
      kernels, planned.elided, planned.launches, compilation->context.device->WithTypicalRates(),
      compilation->options.group_all_launches ? GroupLaunches::kAllThatMay : GroupLaunches::kThatGain);
  planned.launches = std::move(order.launches);
  planned.concurrent = std::move(order.concurrent);
  return absl::OkStatus();
}

}  // namespace fusion::passes
