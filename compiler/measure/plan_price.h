// The price of a whole plan: of its kernels as launches that follow each other, again and again
// (docs/decisions/0035-a-plan-is-a-sequence.md).
#ifndef FUSION_COMPILER_MEASURE_PLAN_PRICE_H_
#define FUSION_COMPILER_MEASURE_PLAN_PRICE_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/launch/loop_memory.h"
#include "compiler/movement/sequence_cost.h"
#include "compiler/plan/plan.h"

namespace fusion {

// Returns which memory each argument of launch number `launch` is, for movement::EstimateSequence. A constant that is
// packed is another memory than the constant as it was; packed copies of one size are taken for the same
// (share_packings.h). Values that a loop places have the memory that their iterations share.
std::vector<std::string> MemoryOf(const FusionKernel& fusion_kernel, size_t launch, const ElidedCopies& elided,
                                  const LoopMemory& loops = {});

// Prices plans of one graph for one device; remembers what it needs to know of each kernel. Not thread-safe.
class PlanPricer {
 public:
  // `device` must outlive the pricer.
  PlanPricer(const DeviceModel& device, int threads) : device_(device), threads_(threads) {}

  // `kernels` are those of a plan's fusion blocks, in order. The launches are those that the pipeline makes of them:
  // copies are elided, and kernels form batches and groups, where it does that for the device. A kernel of a loop costs
  // what it costs in the sequence once, and alone in each further iteration.
  PlanEstimate Price(const ecg::Graph& graph, const KernelSequence& kernels);

 private:
  const movement::SequenceKernel& Known(const FusionKernel& kernel);

  const DeviceModel& device_;
  const int threads_;
  std::unordered_map<std::string, movement::SequenceKernel> known_;  // by the kernel's key
};

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_PLAN_PRICE_H_
