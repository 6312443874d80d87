#include "compiler/schedule/prefetch_next_task.h"

#include "compiler/cost/caches.h"

namespace fusion {
namespace {

// Does the step load vectors of the buffer that move with the axis?
bool LoadsVectors(const movement::Step& step, int buffer, const te::Axis& axis, int64_t lanes) {
  if (step.vec_axis < 0) return false;
  // The innermost: of the fold where that is cut into vectors, else of the loops.
  const te::Axis& along = step.fold ? step.fold->axes.back() : step.loops.back().axis;
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
  if (!device.CachesScratch() || phase->grid.empty()) return;
  const te::Axis next = phase->grid.back();
  const int64_t lanes = device.vector_bytes / 4;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const movement::Buffer& buffer = kernel.buffers[b];
    if (buffer.scope == movement::BufferScope::kBlock || buffer.is_constant) continue;
    if (buffer.elements * DTypeBytes(buffer.dtype) < LargestPrivateBytes(device)) continue;
    movement::Step* last = nullptr;
    int steps = 0;
    for (movement::Step& step : phase->steps) {
      if (!LoadsVectors(step, static_cast<int>(b), next, lanes)) continue;
      ++steps;
      if (step.strategy == movement::Strategy::kMapVec) last = &step;
    }
    if (steps < 2 || last == nullptr) continue;
    last->next_task.axis = next.id;
    last->next_task.buffers.push_back(static_cast<int>(b));
  }
}

}  // namespace fusion
