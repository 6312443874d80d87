#include "compiler/pipeline/plan_estimate.h"

#include <cstddef>
#include <utility>

#include "compiler/measure/plan_price.h"
#include "compiler/movement/sequence_cost.h"

namespace fusion {

double EstimatePlan(const std::vector<PlannedLaunch>& launches, const ElidedCopies& elided, const LoopPlan& loops,
                    const DeviceModel& device, int threads) {
  std::vector<movement::SequenceLaunch> sequence;
  for (size_t l = 0; l < launches.size(); ++l) {
    const auto memory = [&](const FusionKernel& fusion_kernel) {
      return MemoryOf(fusion_kernel, l, elided, loops.memory);
    };
    movement::SequenceLaunch launch{
        &launches[l].fusion_kernel.kernel, memory(launches[l].fusion_kernel), {}, launches[l].concurrent};
    for (const FusionKernel& other : launches[l].others) launch.others.push_back(memory(other));
    sequence.push_back(std::move(launch));
  }
  const double once = movement::EstimateSequence(sequence, device, threads);
  double all = once;
  for (const LaunchLoop& loop : loops.launches) {
    std::vector<movement::SequenceLaunch> twice = sequence;
    const auto first = sequence.begin() + static_cast<std::ptrdiff_t>(loop.first);
    const auto end = sequence.begin() + static_cast<std::ptrdiff_t>(loop.end);
    twice.insert(twice.begin() + static_cast<std::ptrdiff_t>(loop.end), first, end);
    all += static_cast<double>(loop.trips - 1) * (movement::EstimateSequence(twice, device, threads) - once);
  }
  return all;
}

}  // namespace fusion
