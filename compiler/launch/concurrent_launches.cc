#include "compiler/launch/concurrent_launches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "compiler/cost/caches.h"
#include "compiler/launch/kernel_order.h"
#include "compiler/movement/cost.h"
#include "compiler/schedule/stitch/task_size.h"

namespace fusion {
namespace {

// Least shares of the time that a launch must save to join a group: where the caches hold all that the group touches,
// and where they do not, so that its launches may take longer beside each other than the model knows.
constexpr double kWorthInCaches = 0.3, kWorthBeyondCaches = 0.4;

// A launch or a group, by the cost model.
struct Work {
  double compute_ns = 0;  // of one unit that does it all
  double memory_ns = 0;   // which all units share
  double longest_ns = 0;  // that its longest launch takes alone, with all units
  int64_t written_bytes = 0, touched_bytes = 0;

  Work With(const Work& other) const {
    return {compute_ns + other.compute_ns, memory_ns + other.memory_ns, std::max(longest_ns, other.longest_ns),
            written_bytes + other.written_bytes, touched_bytes + other.touched_bytes};
  }
  double Ns(double units) const { return std::max({longest_ns, memory_ns, compute_ns / units}); }
};

Work WorkOf(const FusionKernel& fusion_kernel, size_t sets, const DeviceModel& device) {
  const int units = device.parallel_units;
  const double serial_ns = movement::EstimateCost(fusion_kernel.kernel, device, 1).compute_ns;
  const movement::KernelCost cost = movement::EstimateCost(fusion_kernel.kernel, device, units);
  double footprint = 0;
  for (const movement::Buffer& buffer : fusion_kernel.kernel.buffers) {
    if (movement::IsArgument(buffer)) footprint += static_cast<double>(movement::SizeBytes(buffer));
  }
  const double count = static_cast<double>(sets);
  Work work;
  work.compute_ns = count * serial_ns;
  work.memory_ns = count * 1e9 * cost.compulsory_bytes / device.CopyBandwidth(4 * footprint);
  // Sets of a batch run beside each other already.
  work.longest_ns = std::max(cost.latency_ns - 1e9 * device.LaunchSeconds(units), work.Ns(units));
  work.written_bytes = static_cast<int64_t>(sets) * WrittenBytes(fusion_kernel);
  work.touched_bytes = static_cast<int64_t>(count * footprint);
  return work;
}

class Grouping {
 public:
  Grouping(const std::vector<std::shared_ptr<const FusionKernel>>& kernels, const ElidedCopies& elided,
           const std::vector<std::vector<size_t>>& launches, const DeviceModel& device, GroupLaunches which)
      : kernels_(kernels),
        launches_(launches),
        device_(device),
        which_(which),
        largest_cache_(LargestCacheBytes(device)) {
    device_.parallel_units = static_cast<int>(LikelyUnits(device));
    if (largest_cache_ == 0) largest_cache_ = std::numeric_limits<int64_t>::max();
    graph_ = LaunchGraphOf(Dependencies(kernels, elided), launches);
  }

  LaunchOrder Make() {
    LaunchOrder order;
    for (size_t l = 0; l < launches_.size(); ++l) {
      if (graph_.waits[l] == 0) ready_.insert(l);
    }
    while (!ready_.empty()) {
      const std::vector<size_t> group = TakeGroup();
      for (const size_t l : group) {
        order.launches.push_back(launches_[l]);
        order.concurrent.push_back(l != group[0]);
        for (const size_t next : graph_.after[l]) {
          if (--graph_.waits[next] == 0) ready_.insert(next);
        }
      }
    }
    return order;
  }

 private:
  // Takes the first launch that is ready, and others that are ready, too, and gain by running beside it.
  std::vector<size_t> TakeGroup() {
    std::vector<size_t> group = {*ready_.begin()};
    ready_.erase(ready_.begin());
    Work all = Of(group[0]);
    for (auto it = ready_.begin(); it != ready_.end();) {
      const Work& one = Of(*it);
      if (which_ == GroupLaunches::kThatGain && !Gains(all, one)) {
        ++it;
        continue;
      }
      all = all.With(one);
      group.push_back(*it);
      it = ready_.erase(it);
    }
    return group;
  }

  bool Gains(const Work& group, const Work& one) const {
    const Work both = group.With(one);
    if (both.written_bytes > largest_cache_) return false;
    const double units = device_.parallel_units;
    // The barrier does not count: tasks that move to another core than the one that wrote what they read cost as much.
    const double apart_ns = group.Ns(units) + one.Ns(units);
    const bool in_caches = static_cast<double>(both.touched_bytes) <= units * PrivateCacheBytes(device_);
    return apart_ns - both.Ns(units) >= (in_caches ? kWorthInCaches : kWorthBeyondCaches) * apart_ns;
  }

  const Work& Of(size_t launch) {
    const std::vector<size_t>& fusion_blocks = launches_[launch];
    const auto [it, fresh] = work_.try_emplace({kernels_[fusion_blocks[0]].get(), fusion_blocks.size()});
    if (fresh) it->second = WorkOf(*kernels_[fusion_blocks[0]], fusion_blocks.size(), device_);
    return it->second;
  }

  const std::vector<std::shared_ptr<const FusionKernel>>& kernels_;
  const std::vector<std::vector<size_t>>& launches_;
  DeviceModel device_;  // with the units that may run the bundle
  const GroupLaunches which_;
  int64_t largest_cache_;  // bytes
  LaunchGraph graph_;
  std::set<size_t> ready_;
  std::map<std::pair<const FusionKernel*, size_t>, Work> work_;  // by kernel and sets
};

}  // namespace

LaunchOrder GroupConcurrentLaunches(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                    const ElidedCopies& elided, const std::vector<std::vector<size_t>>& launches,
                                    const DeviceModel& device, GroupLaunches which) {
  return Grouping(kernels, elided, launches, device, which).Make();
}

}  // namespace fusion
