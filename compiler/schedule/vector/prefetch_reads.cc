#include "compiler/schedule/vector/prefetch_reads.h"

#include "compiler/cost/caches.h"
#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {
namespace {

// Multiply-adds for each point of a map below which its computation hides behind the memory by itself.
constexpr double kCostly = 12;

// Does the buffer lie beyond the core's own caches? Weights do not count, since they stay from run to run.
bool IsFar(const movement::Buffer& buffer, const DeviceModel& device) {
  return movement::IsArgument(buffer) && !buffer.is_constant &&
         movement::SizeBytes(buffer) >= LargestPrivateBytes(device);
}

// Does the step load vectors of the buffer that move with the axis?
bool LoadsVectors(const movement::Step& step, int buffer, const te::Axis& axis, int64_t lanes) {
  if (movement::VectorAxisOf(step) < 0) return false;
  // The innermost axis: of the reduction where that is cut into vectors, else of the loops.
  const te::Axis& along = step.reduction ? step.reduction->axes.back() : step.loops.back().axis;
  bool loads = false;
  for (const te::Scalar& s : step.body) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || node.tensor != buffer) return;
      loads = loads || (node.indices[0].UsesAxis(axis.id) &&
                        te::ClassifyLanes(node.indices[0], along, lanes) == te::LaneAccess::kContiguous);
    });
  }
  return loads;
}

}  // namespace

void PrefetchNextTask(const DeviceModel& device, const movement::Kernel& kernel, movement::Phase* phase) {
  if (!StrategyOf(device).prefetches || phase->grid.empty()) return;
  const te::Axis next = phase->grid.back();
  const int64_t lanes = device.vector_bytes / 4;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (!IsFar(kernel.buffers[b], device)) continue;
    movement::VectorMap* last = nullptr;
    int steps = 0;
    for (movement::Step& step : phase->steps) {
      if (!LoadsVectors(step, static_cast<int>(b), next, lanes)) continue;
      ++steps;
      if (auto* map = step.As<movement::VectorMap>()) last = map;
    }
    if (steps < 2 || last == nullptr) continue;
    last->read_next.axis = next.id;
    last->read_next.buffers.push_back(static_cast<int>(b));
  }
}

void PrefetchAhead(const DeviceModel& device, const movement::Kernel& kernel, double cost, movement::Step* step) {
  auto* const map = step->As<movement::VectorMap>();
  if (!StrategyOf(device).prefetches || map == nullptr || cost < kCostly) return;
  const te::Axis along = step->loops.back().axis;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    if (!IsFar(kernel.buffers[b], device)) continue;
    if (!LoadsVectors(*step, static_cast<int>(b), along, device.vector_bytes / 4)) continue;
    map->read_next.axis = along.id;
    // The distance, in elements, from the vector that is computed to the misses that are under way.
    map->read_next.distance = int64_t{device.lines_in_flight} * device.line_bytes / 4;
    map->read_next.buffers.push_back(static_cast<int>(b));
  }
}

}  // namespace fusion
