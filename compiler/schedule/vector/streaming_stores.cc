#include "compiler/schedule/vector/streaming_stores.h"

#include <vector>

#include "compiler/cost/caches.h"
#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {
namespace {

bool Reads(const movement::Phase& phase, int buffer) {
  bool reads = false;
  for (const movement::Step& step : phase.steps) {
    for (const std::vector<te::Scalar>* some : {&step.body, &step.then}) {
      for (const te::Scalar& s : *some) {
        te::Visit(s, [&](const te::ScalarNode& node) {
          reads = reads || (node.kind == te::ScalarKind::kLoad && node.tensor == buffer);
        });
      }
    }
  }
  return reads;
}

bool CanStream(const movement::Step& step, const movement::Kernel& kernel, const DeviceModel& device) {
  if (step.lane_limit || step.stores.size() != 1) return false;
  const movement::Loop& inner = step.loops.back();
  const movement::Buffer& buffer = kernel.buffers[step.stores[0].buffer];
  return step.store_types[0] == DType::kF32 && !inner.limit && inner.axis.extent % (device.vector_bytes / 4) == 0 &&
         buffer.scope == Scope::kKernel && FillsCaches(static_cast<double>(movement::SizeBytes(buffer)), device);
}

}  // namespace

void UseStreamingStores(const DeviceModel& device, const movement::Kernel& kernel, ChoiceLog* choices,
                        movement::Phase* phase) {
  if (!StrategyOf(device).streaming_stores) return;
  std::vector<movement::VectorMap*> maps;
  for (movement::Step& step : phase->steps) {
    auto* const map = step.As<movement::VectorMap>();
    if (map != nullptr && !map->streaming_stores && CanStream(step, kernel, device) &&
        !Reads(*phase, step.stores[0].buffer)) {
      maps.push_back(map);
    }
  }
  if (maps.empty() || choices->Pick("streaming", {"no", "yes"}, ChoiceKind::kUnmodelled) == 0) return;
  for (movement::VectorMap* map : maps) map->streaming_stores = true;
}

}  // namespace fusion
