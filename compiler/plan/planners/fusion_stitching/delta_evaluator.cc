#include "compiler/plan/planners/fusion_stitching/delta_evaluator.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/cost/occupancy.h"
#include "compiler/cost/traffic_time.h"
#include "compiler/plan/planners/fusion_stitching/locality.h"

namespace fusion {
namespace {

// A kernel of more operators saves hardly any more memory traffic, and scheduling it takes the square of its size.
constexpr size_t kMostOperators = 64;
// The paper's fixed number (§5.4).
constexpr int kRegisters = 16;

// Bytes of a task's part that block scope holds: shared memory, or the caches of one core.
double BlockScopeBytes(const DeviceModel& device) {
  if (device.unit_limits.Known()) return static_cast<double>(device.unit_limits.shared_bytes);
  double bytes = 0;
  for (const MemoryLevel& level : device.memory) {
    if (!level.shared && level.size_bytes > 0) bytes = std::max(bytes, static_cast<double>(level.size_bytes));
  }
  return bytes;
}

// Returns which share of its most work-items a unit keeps in work-groups with so much shared memory.
double Share(const DeviceModel& device, int64_t shared_bytes) {
  const std::optional<Occupancy> occupancy =
      OccupancyOf({std::max(1, device.work_group_size), kRegisters, shared_bytes}, device);
  return occupancy ? occupancy->share : 1;
}

}  // namespace

std::optional<Delta> DeltaEvaluator::Evaluate(const Pattern& pattern) const {
  ++evaluations_;
  Delta delta;
  if (pattern.size() == 1) return delta;
  const auto inside = [&](int v) { return std::binary_search(pattern.begin(), pattern.end(), v); };
  size_t operators = 0;
  for (int v : pattern) {
    if (!graph_[v].memory_intensive) return std::nullopt;
    operators += graph_[v].members.size();
  }
  if (operators > kMostOperators) return std::nullopt;
  if (!graph_.IsConvex(pattern)) return std::nullopt;

  int64_t pieces = 0;                                       // that all hand-overs have in common
  int64_t largest_bytes = 0;                                // of what is handed over
  double bytes = 0;                                         // that are no longer written or read
  std::map<ecg::ValueId, std::pair<int64_t, int>> outside;  // bytes and readers of what comes from outside
  for (int v : pattern) {
    for (const StoredValue& stored : graph_[v].stores) {
      const auto in = static_cast<double>(std::count_if(stored.readers.begin(), stored.readers.end(), inside));
      if (in == 0) continue;
      const bool kept = stored.returned || in < static_cast<double>(stored.readers.size());
      bytes += static_cast<double>(stored.bytes) * (in + (kept ? 0 : 1));
      largest_bytes = std::max(largest_bytes, stored.bytes);
    }
    for (const ReadValue& read : graph_[v].reads) {
      if (read.producer >= 0 && inside(read.producer)) {
        pieces = CommonPieces(pieces, read.pieces);
      } else {
        auto& [value_bytes, readers] = outside[read.value];
        value_bytes = read.bytes;
        ++readers;
      }
    }
  }
  for (const auto& [value, read] : outside) {
    (void)value;
    bytes += static_cast<double>(read.first) * (read.second - 1);
  }
  if (pieces == 0) {
    // Nothing is handed over. Kernels of the same parallelism share tasks (§4.1); others can be ranges of one launch
    // where launches are work-groups.
    pieces = graph_[pattern[0]].result_elements;
    const bool alike =
        std::all_of(pattern.begin(), pattern.end(), [&](int v) { return graph_[v].result_elements == pieces; });
    if (!alike && device_.PhasesShareLaunch()) return std::nullopt;
    for (int v : pattern) pieces = std::max({pieces, graph_[v].result_elements, int64_t{1}});
  }
  const int64_t scratch = largest_bytes / pieces;
  if (static_cast<double>(scratch) > BlockScopeBytes(device_)) return std::nullopt;

  // A value that is read once instead of twice saves half of a copy.
  delta.reduced_mem = HandOverNs(device_, bytes / 2);
  const double units = std::max(1, device_.parallel_units);
  const double launch_ns = 1e9 * device_.LaunchSeconds(std::max(1, device_.parallel_units));
  delta.reduced_calls = static_cast<double>(pattern.size() - 1) * launch_ns;
  // Eq. 1, relative to the kernels apart: the last wave leaves units idle, and scratch leaves fewer work-groups at
  // once.
  const auto idle = [&](int64_t tasks) {
    const auto count = static_cast<double>(tasks);
    return std::ceil(count / units) * units / count;
  };
  const double share = Share(device_, device_.CachesScratch() ? 0 : scratch);
  if (share <= 0) return std::nullopt;
  const double fused = idle(pieces) * Share(device_, 0) / share;
  for (int v : pattern) {
    const double work_ns = std::max(0.0, graph_[v].estimate_ns - launch_ns);
    delta.penalty += work_ns * std::max(0.0, fused / idle(graph_[v].tasks) - 1);
  }
  return delta;
}

}  // namespace fusion
