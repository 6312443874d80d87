#include "compiler/pipeline/plan_estimate.h"

#include <utility>

#include "compiler/measure/plan_price.h"
#include "compiler/movement/sequence_cost.h"

namespace fusion {

double EstimatePlan(const std::vector<PlannedLaunch>& launches, const ElidedCopies& elided, const DeviceModel& device,
                    int threads) {
  std::vector<movement::SequenceLaunch> sequence;
  for (size_t l = 0; l < launches.size(); ++l) {
    movement::SequenceLaunch launch{
        &launches[l].block.kernel, MemoryOf(launches[l].block, l, elided), {}, launches[l].concurrent};
    for (const BlockKernel& other : launches[l].others) launch.others.push_back(MemoryOf(other, l, elided));
    sequence.push_back(std::move(launch));
  }
  return movement::EstimateSequence(sequence, device, threads);
}

}  // namespace fusion
