// KernelCache: the kernels of a graph's fusion blocks, each scheduled once. Fusion blocks of one structure share a
// schedule and differ only in the values that its arguments stand for (fusion_signature.h).
#ifndef FUSION_COMPILER_KERNELS_KERNEL_CACHE_H_
#define FUSION_COMPILER_KERNELS_KERNEL_CACHE_H_

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/kernels/fusion_kernel.h"
#include "compiler/layout/value_layouts.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/plan/plan.h"
#include "compiler/schedule/choices.h"

namespace fusion {

// Serves one graph; not thread-safe. Fusion blocks of the same nodes with other recomputed nodes, or hand-overs at
// other scopes, are different ones.
class KernelCache {
 public:
  // `disabled_passes`: see ScheduleOptions.
  explicit KernelCache(int threads, std::set<std::string> disabled_passes = {})
      : threads_(threads), disabled_passes_(std::move(disabled_passes)) {}

  // Call it before anything else. All three must outlive the cache's use.
  void Start(const ecg::Graph* graph, const ValueLayouts* layouts, const DeviceModel* device);

  using KernelOr = absl::StatusOr<std::shared_ptr<const FusionKernel>>;
  KernelOr Get(const FusionBlock& fusion_block);
  // Fails with FAILED_PRECONDITION and the reason where the nodes cannot be one kernel, or would be a bad one.
  absl::StatusOr<FusionBlockAccount> Fit(const FusionBlock& fusion_block);
  // Returns the cost model's estimate at typical rates; 0 where there is no kernel.
  double EstimateNs(const FusionBlock& fusion_block);

  // Makes another kernel of a fusion block, which the cache does not remember.
  absl::StatusOr<FusionKernel> Schedule(const FusionBlock& fusion_block, const Choices& choices) const;
  // Makes Get return `kernel`, which was measured to be the fastest, for this fusion block. Fusion blocks of equal
  // structure keep theirs.
  void Replace(const FusionBlock& fusion_block, FusionKernel kernel);

  const ecg::Graph& graph() const { return *graph_; }
  const DeviceModel& device() const { return *device_; }
  // The device at typical rates: estimates with it are the same whenever a device registers.
  const DeviceModel& typical() const { return typical_; }
  int threads() const { return threads_; }

 private:
  // The part that fusion blocks of one structure share, made for the first of them.
  struct Prototype {
    std::shared_ptr<const FusionKernel> kernel;
    std::vector<ecg::ValueId> values;
    FusionBlockAccount account;
  };
  // A fusion block of the graph, with its own `values` in place of the prototype's.
  struct Entry {
    absl::StatusOr<std::shared_ptr<const Prototype>> prototype;
    std::vector<ecg::ValueId> values;
    std::shared_ptr<const FusionKernel> kernel;  // with this fusion block's arguments; made on demand
  };
  Entry& Find(const FusionBlock& fusion_block);
  Entry Make(const FusionBlock& fusion_block);

  const int threads_;
  const std::set<std::string> disabled_passes_;
  const ecg::Graph* graph_ = nullptr;
  const ValueLayouts* layouts_ = nullptr;
  const DeviceModel* device_ = nullptr;
  DeviceModel typical_;
  ecg::Loops loops_;
  std::map<FusionBlock, Entry> fusion_blocks_;
  std::unordered_map<std::string, std::shared_ptr<const Prototype>> prototypes_;  // by signature
};

}  // namespace fusion

#endif  // FUSION_COMPILER_KERNELS_KERNEL_CACHE_H_
