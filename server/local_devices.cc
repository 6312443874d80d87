#include "server/local_devices.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/backends/process/child_process.h"
#include "compiler/cost/device_model.h"
#include "runtime/base/steady_clock.h"
#include "server/scheduler/farm.h"

namespace fusion {
namespace {

constexpr int kExitNoDevice = 3;  // the exit code of fusion-worker --describe

// As LastWords, but short.
std::string InShort(const std::string& text) {
  constexpr size_t kMostBytes = 300;
  return LastWords(absl::StripAsciiWhitespace(text), kMostBytes);
}

}  // namespace

const char* NameOf(LocalDevice::State state) {
  switch (state) {
    case LocalDevice::State::kLooking:
      return "looking";
    case LocalDevice::State::kFound:
      return "found";
    case LocalDevice::State::kFailing:
      return "failing";
    case LocalDevice::State::kMissing:
      return "missing";
  }
  return "";
}

LocalDevices::LocalDevices(LocalDevicesOptions options) : options_(std::move(options)) {
  for (const std::string& kind : options_.kinds) {
    entries_.push_back({{kind, LocalDevice::State::kLooking, "being looked for since the server's start"}, nullptr});
  }
}

LocalDevices::~LocalDevices() { Stop(absl::Seconds(2)); }

void LocalDevices::Start(std::string server_address) {
  server_address_ = std::move(server_address);
  thread_ = std::thread([this] { Look(); });
}

void LocalDevices::Stop(absl::Duration grace) {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  absl::MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    if (entry.worker != nullptr) entry.worker->BeginStop();
  }
  const absl::Time until = SteadyNow() + grace;
  for (const Entry& entry : entries_) {
    if (entry.worker != nullptr) entry.worker->Stop(std::max(absl::ZeroDuration(), until - SteadyNow()));
  }
}

std::vector<LocalDevice> LocalDevices::Devices() const {
  std::vector<LocalDevice> devices;
  absl::MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    devices.push_back(entry.device);
    if (entry.worker == nullptr) continue;
    const LocalWorker::Endings endings = entry.worker->endings();
    if (!endings.away) continue;
    devices.back().state = LocalDevice::State::kFailing;
    devices.back().words = absl::StrCat(entry.device.words, ": its worker ended with ", endings.last,
                                        " (endings so far: ", endings.count, ")");
  }
  return devices;
}

bool LocalDevices::IsExpected(const std::string& kind) const {
  absl::MutexLock lock(&mutex_);
  for (const Entry& entry : entries_) {
    if (entry.device.kind != kind) continue;
    return entry.worker == nullptr ? entry.device.state == LocalDevice::State::kLooking : !entry.worker->endings().away;
  }
  return false;
}

void LocalDevices::Look() {
  for (size_t i = 0; i < options_.kinds.size() && !stopping_; ++i) {
    LocalDevice device{options_.kinds[i], LocalDevice::State::kMissing, ""};
    std::vector<std::string> command = Describe(device.kind, &device);
    if (stopping_) return;
    {
      absl::MutexLock lock(&mutex_);
      entries_[i].device = device;
      if (!command.empty()) {
        entries_[i].worker =
            std::make_unique<LocalWorker>(LocalWorkerName(device.kind), std::move(command), options_.log);
      }
    }
    options_.log(
        {LogLevel::kInfo, "device", {{"kind", device.kind}, {"state", NameOf(device.state)}, {"words", device.words}}});
  }
}

std::vector<std::string> LocalDevices::Describe(const std::string& kind, LocalDevice* device) const {
  const std::vector<std::string> worker = {options_.worker_program,
                                           "--kinds",
                                           kind,
                                           "--state",
                                           options_.state_folder,
                                           "--turn-file",
                                           absl::StrCat(options_.state_folder, "/turn")};
  ChildOptions limits;
  limits.deadline = options_.limit;
  limits.cancelled = [this] { return stopping_.load(); };
  std::vector<std::string> describe = worker;
  describe.push_back("--describe");
  // A driver is asked as it will be used.
  for (const std::string& flag : options_.worker_flags) {
    if (flag == "--unconfined") describe.push_back(flag);
  }
  const absl::StatusOr<ChildResult> child = RunChild(describe, limits);
  if (!child.ok()) {
    device->words = std::string(child.status().message());
    return {};
  }

  std::vector<std::string> command = worker;
  for (const std::string& argument :
       {std::string("--server"), server_address_, std::string("--name"), LocalWorkerName(kind)}) {
    command.push_back(argument);
  }
  command.insert(command.end(), options_.worker_flags.begin(), options_.worker_flags.end());
  // The CPU's worker builds for every target that it can. A second worker that did so would disturb its measurements.
  if (kind != "cpu") command.insert(command.end(), {"--build-kinds", kind});
  absl::StatusOr<DeviceModel> model = absl::UnknownError("");
  if (child->ok()) model = DeviceModelFromJson(child->stdout_text);
  if (model.ok()) {
    device->state = LocalDevice::State::kFound;
    device->words = model->name;
    // Drivers compile for seconds before a device can be measured. With this file the worker need not measure it again.
    const std::string file = absl::StrCat(options_.state_folder, "/described-", kind, ".json");
    std::error_code ignored;
    std::filesystem::create_directories(options_.state_folder, ignored);
    std::ofstream stream(file);
    stream << child->stdout_text;
    stream.close();
    if (stream) command.insert(command.end(), {"--device-model", file});
    return command;
  }
  if (child->exit_code == kExitNoDevice) {
    device->words = InShort(child->stderr_text);
    return {};
  }
  device->words = absl::StrCat("looking for it failed: fusion-worker --describe --kinds ", kind, " ",
                               child->ok() ? "printed no device model" : child->Describe(),
                               child->stderr_text.empty() ? "" : ". It said: ", InShort(child->stderr_text));
  if (kind != "cpu") {
    absl::StrAppend(&device->words, ". Its driver is at fault; fusiond looks again when it is started again");
    return {};
  }
  // Nothing can be built without the CPU's worker, and its own attempt may succeed.
  device->state = LocalDevice::State::kFound;
  return command;
}

}  // namespace fusion
