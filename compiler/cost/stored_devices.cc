#include "compiler/cost/stored_devices.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/cost/stored_device_texts.h"
#include "runtime/base/check.h"

namespace fusion {

namespace {

std::map<std::string, DeviceModel> ParseDevices() {
  std::map<std::string, DeviceModel> devices;
  for (const std::string& text : StoredDeviceTexts()) {
    absl::StatusOr<DeviceModel> device = DeviceModelFromJson(text);
    FUSION_CHECK(device.ok(), "a stored device model does not parse");
    const std::string target = absl::StrCat(device->kind, ":", device->isa);
    devices[target] = *std::move(device);
  }
  return devices;
}

// The stored devices by target. They are parsed once: each submission asks.
const std::map<std::string, DeviceModel>& Devices() {
  static const auto* devices = new std::map<std::string, DeviceModel>(ParseDevices());
  return *devices;
}

}  // namespace

std::vector<std::string> StoredTargets() {
  std::vector<std::string> targets;
  for (const auto& [target, device] : Devices()) targets.push_back(target);
  return targets;
}

absl::StatusOr<DeviceModel> StoredDevice(const std::string& target) {
  const auto& devices = Devices();
  if (const auto it = devices.find(target); it != devices.end()) return it->second;
  return absl::NotFoundError(
      absl::StrCat("no figures are kept of a device '", target, "'; there are ", absl::StrJoin(StoredTargets(), ", ")));
}

}  // namespace fusion
