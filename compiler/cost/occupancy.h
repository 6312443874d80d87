// Occupancy: how many work-groups a unit of the device keeps at once. It hides the latency of one behind the others'
// work, so that few of them leave it idle. (NVIDIA's CUDA C++ Programming Guide, "Multiprocessor Level".)
#ifndef FUSION_COMPILER_COST_OCCUPANCY_H_
#define FUSION_COMPILER_COST_OCCUPANCY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "compiler/cost/device_model.h"

namespace fusion {

// The resources that one work-group takes.
struct GroupDemand {
  int work_items = 1;
  int registers = 0;         // of 32 bits, of each work-item
  int64_t shared_bytes = 0;  // declared by the kernel
};

struct Occupancy {
  GroupDemand demand;
  int groups = 0;     // that a unit keeps at once; 0: it cannot run one
  double share = 0;   // of the work-items that a unit keeps at most
  std::string limit;  // what keeps it from more: "registers", "shared memory", "work-items", "work-groups"
};

// Nothing on a device whose limits are unknown or that has none.
std::optional<Occupancy> OccupancyOf(const GroupDemand& demand, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_OCCUPANCY_H_
