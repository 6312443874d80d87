#include "compiler/pipeline/plan_passes.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/derived.h"
#include "compiler/choose_layouts/choose_layouts.h"
#include "compiler/cost/typical_core.h"
#include "compiler/launch/batch_launches.h"
#include "compiler/launch/concurrent_launches.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/launch/loop_memory.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/plan/mapping_table.h"
#include "runtime/base/status_macros.h"
#include "runtime/bundle/manifest.h"

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

absl::StatusOr<std::vector<std::shared_ptr<const FusionKernel>>> KernelsOf(Compilation* compilation) {
  std::vector<std::shared_ptr<const FusionKernel>> kernels;
  for (const FusionBlock& fusion_block : compilation->planned->plan.fusion_blocks) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), compilation->oracle->Get(fusion_block));
  }
  return kernels;
}

// The part of the segments that passes over launches see: the copies that are elided, and all fusion blocks of other
// segments, which are left out like these.
struct SegmentView {
  std::vector<size_t> fusion_blocks;
  ElidedCopies elided;
};

std::vector<SegmentView> ViewsOf(const Planned& planned) {
  std::vector<SegmentView> views;
  for (const LoopSegment& segment : planned.segments) {
    SegmentView& view = views.emplace_back(SegmentView{segment.fusion_blocks, planned.elided});
    size_t next = 0;
    for (size_t b = 0; b < planned.plan.fusion_blocks.size(); ++b) {
      if (next < view.fusion_blocks.size() && view.fusion_blocks[next] == b) {
        ++next;
      } else {
        view.elided.fusion_blocks.insert(b);
      }
    }
  }
  return views;
}

// Loops whose values would not be aligned have been written out (HasUnalignedLoops).
absl::Status CheckAligned(const Planned& planned, const DeviceModel& device) {
  if (device.SharesHostMemory()) return absl::OkStatus();
  for (const auto& [v, place] : planned.loops.memory.places) {
    const int64_t bytes = planned.loops.memory.SlotsOf(place).slot_bytes;
    if (place.loop < 0 || bytes % kBufferAlignBytes == 0) continue;
    return absl::InternalError(absl::StrCat("value '", planned.graph.value(v).name, "' of a loop moves by ", bytes,
                                            " bytes, which kernels of ", device.kind, " cannot read"));
  }
  return absl::OkStatus();
}

absl::Status FindLaunchLoops(Planned* planned) {
  ASSIGN_OR_RETURN(const ecg::Loops loops, ecg::FindLoops(planned->graph));
  planned->loops.launches = LoopsOfLaunches(loops, planned->plan.fusion_blocks, planned->launches);
  return absl::OkStatus();
}

absl::Status MakeLaunches(BatchKernels which, Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  const std::vector<SegmentView> segments = ViewsOf(planned);
  planned.launches.clear();
  for (const SegmentView& segment : segments) {
    auto launches = fusion::BatchLaunches(kernels, segment.elided, *compilation->context.device, which);
    std::move(launches.begin(), launches.end(), std::back_inserter(planned.launches));
  }
  return FindLaunchLoops(&planned);
}

}  // namespace

bool SharesMemory(const Compilation& compilation) { return compilation.context.device->SharesHostMemory(); }

absl::Status Layout(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  if (compilation->given_layouts != nullptr) {
    planned.layouts = *compilation->given_layouts;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(planned.layouts,
                   ChooseLayouts(planned.graph, WithTypicalRates(*compilation->context.device), compilation->Units()));
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
  options.negligible_ns = kNegligible * LeastNs(planned.graph, WithTypicalRates(*context.device), compilation->Units());
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
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  ASSIGN_OR_RETURN(const ecg::Loops loops, ecg::FindLoops(planned.graph));
  planned.elided = fusion::ElideCopies(planned.graph, kernels, ValuesOfLoops(planned.graph, loops));
  return absl::OkStatus();
}

absl::Status PlaceLoops(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const ecg::Loops loops, ecg::FindLoops(planned.graph));
  planned.loops.memory = PlaceLoopValues(planned.graph, loops);
  RETURN_IF_ERROR(CheckAligned(planned, *compilation->context.device));
  std::set<size_t> boundaries;
  planned.segments = SegmentsOf(planned.graph, loops, planned.plan.fusion_blocks, &boundaries);
  planned.elided.fusion_blocks.insert(boundaries.begin(), boundaries.end());
  return absl::OkStatus();
}

absl::Status Launches(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  const bool loops = planned.segments.size() > 1 || (!planned.segments.empty() && planned.segments[0].loop >= 0);
  if (loops || SharesMemory(*compilation)) return MakeLaunches(BatchKernels::kNone, compilation);
  for (size_t b = 0; b < planned.plan.fusion_blocks.size(); ++b) planned.launches.push_back({b});
  return absl::OkStatus();
}

absl::Status BatchLaunches(Compilation* compilation) {
  return MakeLaunches(BatchKernels::kThatLeaveUnitsIdle, compilation);
}

absl::Status ConcurrentLaunches(Compilation* compilation) {
  Planned& planned = *compilation->planned;
  ASSIGN_OR_RETURN(const auto kernels, KernelsOf(compilation));
  const std::vector<SegmentView> segments = ViewsOf(planned);
  const DeviceModel typical = WithTypicalRates(*compilation->context.device);
  const GroupLaunches which =
      compilation->options.group_all_launches ? GroupLaunches::kAllThatMay : GroupLaunches::kThatGain;
  LaunchOrder all;
  size_t next = 0;  // launches are in the order of the segments
  for (const SegmentView& segment : segments) {
    std::vector<std::vector<size_t>> launches;
    for (; next < planned.launches.size() && segment.elided.fusion_blocks.count(planned.launches[next][0]) == 0;
         ++next) {
      launches.push_back(planned.launches[next]);
    }
    LaunchOrder order = GroupConcurrentLaunches(kernels, segment.elided, launches, typical, which);
    std::move(order.launches.begin(), order.launches.end(), std::back_inserter(all.launches));
    all.concurrent.insert(all.concurrent.end(), order.concurrent.begin(), order.concurrent.end());
  }
  planned.launches = std::move(all.launches);
  planned.concurrent = std::move(all.concurrent);
  return FindLaunchLoops(&planned);
}

}  // namespace fusion::passes
