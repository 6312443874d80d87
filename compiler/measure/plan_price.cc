#include "compiler/measure/plan_price.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/launch/batch_launches.h"
#include "compiler/launch/concurrent_launches.h"
#include "compiler/movement/cost.h"
#include "compiler/ops/control/find_loops.h"

namespace fusion {

std::vector<std::string> MemoryOf(const FusionKernel& fusion_kernel, size_t launch, const ElidedCopies& elided,
                                  const LoopMemory& loops) {
  std::vector<std::string> memory;
  for (size_t a = 0; a < fusion_kernel.args.size(); ++a) {
    const KernelArg& arg = fusion_kernel.args[a];
    std::string& name = memory.emplace_back();
    if (arg.kind == KernelArg::Kind::kTemporary) {
      name = absl::StrCat("temporary ", launch, " ", a);
    } else if (arg.value == ecg::kNone) {
      name = absl::StrCat("literal ", fusion_kernel.key, " ", a);
    } else {
      ecg::ValueId value = arg.value;
      for (auto it = elided.values.find(value); it != elided.values.end(); it = elided.values.find(value)) {
        value = it->second.whole;
      }
      const auto place = loops.places.find(value);
      if (place == loops.places.end()) {
        name = absl::StrCat("value ", value);
      } else if (place->second.memory < 0) {
        name = absl::StrCat("value ", place->second.whole);
      } else {
        name = absl::StrCat("loop memory ", place->second.memory);
      }
      if (arg.pack >= 0) absl::StrAppend(&name, " packed ", fusion_kernel.kernel.buffers[a].elements);
    }
  }
  return memory;
}

namespace {

// The loop in which the kernel runs, or ecg::Loops::kOnce or kBoundary.
int LoopOf(const ecg::Graph& graph, const ecg::Loops& loops, const FusionKernel& kernel) {
  for (const KernelArg& arg : kernel.args) {
    if (!arg.written || arg.kind != KernelArg::Kind::kValue) continue;
    return loops.of_node[graph.value(arg.value).producer];
  }
  return ecg::Loops::kOnce;
}

}  // namespace

const movement::SequenceKernel& PlanPricer::Known(const FusionKernel& kernel) {
  auto it = known_.find(kernel.key);
  if (it == known_.end()) {
    it = known_.emplace(kernel.key, movement::MakeSequenceKernel(kernel.kernel, device_, threads_)).first;
  }
  return it->second;
}

PlanEstimate PlanPricer::Price(const ecg::Graph& graph, const KernelSequence& kernels) {
  ElidedCopies elided;
  LaunchOrder order;
  const ecg::Loops loops = ecg::LoopsOf(graph);
  double further_ns = 0;
  if (device_.SharesHostMemory()) {
    elided = ElideCopies(graph, kernels, ValuesOfLoops(graph, loops));
    for (size_t b = 0; b < kernels.size() && !loops.empty(); ++b) {
      const int loop = LoopOf(graph, loops, *kernels[b]);
      if (loop == ecg::Loops::kBoundary) elided.fusion_blocks.insert(b);
      if (loop < 0) continue;
      further_ns += static_cast<double>(loops.list[static_cast<size_t>(loop)].trips - 1) *
                    movement::EstimateCost(kernels[b]->kernel, device_, threads_).latency_ns;
    }
    order = GroupConcurrentLaunches(kernels, elided, BatchLaunches(kernels, elided, device_), device_);
  } else {
    for (size_t b = 0; b < kernels.size(); ++b) order.launches.push_back({b});
    order.concurrent.assign(kernels.size(), false);
  }
  PlanEstimate estimate;
  std::vector<movement::SequenceLaunch> sequence;
  for (size_t l = 0; l < order.launches.size(); ++l) {
    const FusionKernel& first = *kernels[order.launches[l][0]];
    movement::SequenceLaunch launch{
        &first.kernel, MemoryOf(first, l, elided), {}, !order.concurrent.empty() && order.concurrent[l], &Known(first)};
    for (size_t other = 1; other < order.launches[l].size(); ++other) {
      launch.others.push_back(MemoryOf(*kernels[order.launches[l][other]], l, elided));
    }
    sequence.push_back(std::move(launch));
    const auto phases = static_cast<int64_t>(first.kernel.BetweenBarriers().size());
    const bool one_launch = device_.PhasesShareLaunch() || first.kernel.persistent;
    estimate.launches += one_launch ? 1 : phases;
    estimate.barriers += one_launch ? phases - 1 : 0;
  }
  estimate.ns = movement::EstimateSequence(sequence, device_, threads_) + further_ns;
  return estimate;
}

}  // namespace fusion
