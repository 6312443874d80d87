// Models of devices that need not be attached (the files of devices/). Planning for them relies on published figures.
#ifndef FUSION_COMPILER_COST_STORED_DEVICES_H_
#define FUSION_COMPILER_COST_STORED_DEVICES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"

namespace fusion {

// "kind:architecture" of each stored device.
std::vector<std::string> StoredTargets();

// Fails with NOT_FOUND, naming the targets that exist.
absl::StatusOr<DeviceModel> StoredDevice(const std::string& target);

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_STORED_DEVICES_H_
