#include "compiler/launch/batch_launches.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>

#include "compiler/cost/caches.h"
#include "compiler/launch/kernel_order.h"
#include "compiler/movement/cost.h"
#include "compiler/schedule/stitch/task_size.h"

namespace fusion {
namespace {

// Least arithmetic of a batch, in launch times; below it, waking other cores costs as much as it saves.
constexpr double kWorthBatching = 8;

// The kernel's computing time with one thread, if it leaves units idle; otherwise 0.
double IdleNs(const FusionKernel& fusion_kernel, const DeviceModel& device) {
  int64_t tasks = 0;
  for (const movement::Phase& phase : fusion_kernel.kernel.phases) tasks = std::max(tasks, phase.tasks());
  if (tasks >= LikelyUnits(device) || fusion_kernel.kernel.persistent) return 0;
  return movement::EstimateCost(fusion_kernel.kernel, device, 1).latency_ns - 1e9 * device.LaunchSeconds(1);
}

}  // namespace

std::vector<std::vector<size_t>> BatchLaunches(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                               const ElidedCopies& elided, const DeviceModel& device,
                                               BatchKernels which) {
  const std::vector<std::set<size_t>> before = Dependencies(kernels, elided);
  int64_t most_bytes = LargestCacheBytes(device);
  if (most_bytes == 0) most_bytes = std::numeric_limits<int64_t>::max();
  // Fusion blocks that are equally far from the start do not depend on each other, and neither do batches of them.
  std::vector<int> depth(kernels.size(), 0);
  std::map<std::pair<int, std::string>, std::vector<size_t>> alike;
  for (size_t b = 0; b < kernels.size(); ++b) {
    for (size_t other : before[b]) depth[b] = std::max(depth[b], depth[other] + 1);
    if (elided.fusion_blocks.count(b) == 0) alike[{depth[b], kernels[b]->key}].push_back(b);
  }
  std::vector<std::vector<size_t>> launches;
  for (const auto& [key, fusion_blocks] : alike) {
    const double ns =
        which != BatchKernels::kNone && fusion_blocks.size() > 1 ? IdleNs(*kernels[fusion_blocks[0]], device) : 0;
    const bool worth = ns * static_cast<double>(fusion_blocks.size()) >= kWorthBatching * 1e9 * device.launch_s;
    int64_t bytes = 0;
    for (size_t b : fusion_blocks) {
      bytes += WrittenBytes(*kernels[b]);
      if (b == fusion_blocks[0] || !worth || bytes > most_bytes) {
        launches.emplace_back();
        bytes = WrittenBytes(*kernels[b]);
      }
      launches.back().push_back(b);
    }
  }
  // Keeps as close to the order of the fusion blocks as batches allow.
  LaunchGraph graph = LaunchGraphOf(before, launches);
  using Ready = std::pair<size_t, size_t>;  // first fusion block, launch
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t l = 0; l < launches.size(); ++l) {
    if (graph.waits[l] == 0) ready.emplace(launches[l][0], l);
  }
  std::vector<std::vector<size_t>> order;
  while (!ready.empty()) {
    const size_t launch = ready.top().second;
    ready.pop();
    for (size_t next : graph.after[launch]) {
      if (--graph.waits[next] == 0) ready.emplace(launches[next][0], next);
    }
    order.push_back(std::move(launches[launch]));
  }
  return order;
}

}  // namespace fusion
