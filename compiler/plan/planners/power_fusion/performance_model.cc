#include "compiler/plan/planners/power_fusion/performance_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "compiler/cost/caches.h"
#include "compiler/cost/traffic_time.h"

namespace fusion::power_fusion {

namespace {

// Slices that are shorter than a line bring lines of which their unit needs a part only. Returns how many times more
// bytes come than are needed, at most kMostWaste: neighbouring units find the rest of a line in a cache.
constexpr double kMostWaste = 4;
double LinesShare(const Gir& gir, const DeviceModel& device) {
  double needed = 0, brought = 0;
  const auto add = [&](const Slice& slice) {
    if (slice.memory != Scope::kDevice) return;
    const double element = slice.bytes / static_cast<double>(std::max<int64_t>(1, NumElements(slice.shape)));
    const double width = std::max(1.0, element * static_cast<double>(slice.pattern.width));
    needed += slice.bytes;
    brought += slice.bytes * std::clamp(device.line_bytes / width, 1.0, kMostWaste);
  };
  for (const GOperator& op : gir.operators) {
    if (op.kind != GKind::kMove) continue;
    for (const int slice : op.reads) add(gir.slices[slice]);
    add(gir.slices[op.writes]);
  }
  return needed > 0 ? brought / needed : 1;
}

}  // namespace

double EstimateNs(const Gir& gir, const DeviceModel& device) {
  const MovedBytes moved = BytesOf(gir, device);
  const std::vector<int> phases = PhasesOf(gir);
  std::vector<double> operations(moved.phases, 0);
  for (size_t o = 0; o < gir.operators.size(); ++o) operations[phases[o]] += gir.operators[o].operations;
  const double units = static_cast<double>(std::max<int64_t>(1, gir.units));
  // As many units work as there are, in waves.
  const double parallel = std::min<double>(units, device.parallel_units);
  const double waves = std::ceil(units / parallel) * parallel / units;
  double computing = 0;
  for (const double of_phase : operations) computing += of_phase / device.fma_f32_flops_per_s / parallel * waves;
  // A kernel's operands come from outside the caches of its own (compiler/movement/cost.h).
  const double bytes = moved.Dram(device);
  const double moving =
      bytes > 0 ? LinesShare(gir, device) * bytes / device.CopyBandwidth(4 * bytes) / MemoryUnits(device, units) : 0;
  const double exchanging =
      moved.exchanged > 0 ? moved.exchanged / device.ReadBandwidth(moved.unit_bytes) / parallel : 0;
  const double waiting =
      device.LaunchSeconds(device.parallel_units) + (moved.phases - 1) * device.BarrierSeconds(device.parallel_units);
  return 1e9 * (std::max(moving, computing + exchanging) + waiting);
}

}  // namespace fusion::power_fusion
