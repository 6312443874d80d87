#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {

const TargetStrategy& StrategyOf(const DeviceModel& device) {
  if (device.WorkItemsAreLanes()) return WorkGroupStrategy();
  return device.CachesScratch() ? CpuStrategy() : SingleItemStrategy();
}

}  // namespace fusion
