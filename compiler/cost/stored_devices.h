// Models of devices that need not be attached (the files of devices/): planning for them goes by published figures.
#ifndef FUSION_COMPILER_COST_STORED_DEVICES_H_
#define FUSION_COMPILER_COST_STORED_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// "kind:architecture" of each.
std::vector<std::string> StoredTargets();

// NOT_FOUND naming those there are.
absl::StatusOr<DeviceModel> StoredDevice(const std::string& target);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_STORED_DEVICES_H_
