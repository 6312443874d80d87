#include "compiler/cost/stored_devices.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/stored_device_texts.h"
#include "runtime/base/check.h"

namespace fusion {

namespace {

// The stored devices by target.
std::map<std::string, DeviceModel> Devices() {
  std::map<std::string, DeviceModel> devices;
  for (const std::string& text : StoredDeviceTexts()) {
    absl::StatusOr<DeviceModel> device = DeviceModelFromJson(text);
    FUSION_CHECK(device.ok(), "a stored device model does not parse");
    const std::string target = absl::StrCat(device->kind, ":", device->isa);
    devices[target] = *std::move(device);
  }
  return devices;
}

}  // namespace

std::vector<std::string> StoredTargets() {
  std::vector<std::string> targets;
  for (const auto& [target, device] : Devices()) targets.push_back(target);
  return targets;
}

absl::StatusOr<DeviceModel> StoredDevice(const std::string& target) {
  std::map<std::string, DeviceModel> devices = Devices();
  if (auto it = devices.find(target); it != devices.end()) return std::move(it->second);
  return absl::NotFoundError(
      absl::StrCat("no figures are kept of a device '", target, "'; there are ", absl::StrJoin(StoredTargets(), ", ")));
}

}  // namespace fusion
