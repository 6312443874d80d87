#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/known_by.h"
#include "client/verbs/verbs.h"
#include "runtime/base/user_folders.h"

namespace fusion {
namespace {

struct Check {
  std::string what;
  bool ok = false;
  std::string found;
  std::string advice;  // when not ok
  bool needed = true;  // a compilation for the processor needs it
};

Check CheckProcessor() {
  Check check{"processor", false, "", "bundles for target cpu need AVX2 and FMA (x86-64) or aarch64"};
#if defined(__x86_64__)
  check.ok = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  check.found = __builtin_cpu_supports("avx512f") ? "AVX-512" : check.ok ? "AVX2" : "neither AVX2 nor AVX-512";
#elif defined(__aarch64__)
  check.ok = true;
  check.found = "NEON";
#else
  check.found = "unknown architecture";
#endif
  return check;
}

Check CheckFolder(const std::string& what, const std::string& folder) {
  Check check{what, false, folder, "make it writable, or set XDG_STATE_HOME / XDG_CACHE_HOME"};
  std::error_code error;
  std::filesystem::path existing = folder;
  while (!std::filesystem::exists(existing, error) && existing.has_parent_path() &&
         existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  check.ok = access(existing.c_str(), W_OK) == 0;
  const auto space = std::filesystem::space(existing, error);
  if (!error) {
    absl::StrAppend(&check.found, ", ", BytesInWords(static_cast<int64_t>(space.available)), " free");
    if (space.available < (uint64_t{1} << 30)) {
      check.ok = false;
      check.advice = "free some space: less than 1 GiB is left";
    }
  }
  return check;
}

class DoctorVerb : public Verb {
 public:
  std::string name() const override { return "doctor"; }
  std::string help() const override {
    return "look for what would keep a compilation from working, and say what to do";
  }
  std::vector<Option> Options() override { return {OutputOption(&format_)}; }

  int Run(const CommonOptions& common) override {
    std::vector<Check> checks = {CheckProcessor(), CheckFolder("state", UserStateFolder()),
                                 CheckFolder("cache", UserCacheFolder())};
    auto connection = Connection::Open(common.endpoint);
    auto capabilities = connection->GetCapabilities(absl::Seconds(3));
    if (capabilities.ok()) {
      checks.push_back(
          {"server", true, absl::StrCat(common.endpoint.address, ", version ", capabilities->server_version()), ""});
      if (const auto serves = connection->IsServing(); serves.ok() && !*serves) {
        checks.push_back({"serving", false, "the server takes no new jobs",
                          "read its log, or what `fusionctl submit` says: its disk is full, or its database damaged"});
      }
      checks.push_back({"versions", capabilities->server_version() == FUSION_VERSION,
                        absl::StrCat("client ", FUSION_VERSION, ", server ", capabilities->server_version()),
                        "update the older of the two"});
      if (!capabilities->compilation_limits().empty()) {
        checks.push_back({"compilation memory", true, capabilities->compilation_limits(), "", false});
      }
      CheckWorkers(*connection, *capabilities, &checks);
    } else {
      checks.push_back({"server", false, std::string(capabilities.status().message()),
                        absl::IsUnavailable(capabilities.status())
                            ? "start one with `fusiond`, or name one with --server or FUSION_SERVER"
                            : "read docs/guides/serve-a-network.md, part 4"});
    }
    Print(checks);
    if (!capabilities.ok()) return ExitCodeOf(capabilities.status());
    for (const Check& check : checks) {
      if (!check.ok && check.needed) return kExitFailed;
    }
    return kExitOk;
  }

 private:
  // The kinds of device that workers measure, and those that the server looked for on its own machine.
  static std::vector<Check> CheckDevices(const v1::Capabilities& capabilities,
                                         const std::map<std::string, std::vector<std::string>>& workers_of) {
    std::map<std::string, std::set<std::string>> names;
    for (const v1::TargetInfo& target : capabilities.targets()) names[target.kind()].insert(target.device_name());
    std::vector<Check> checks;
    for (const auto& [kind, workers] : workers_of) {
      checks.push_back({absl::StrCat("device ", kind), true,
                        absl::StrCat(absl::StrJoin(names[kind], ", "), " (", absl::StrJoin(workers, ", "), ")"), ""});
    }
    for (const v1::LocalDevice& device : capabilities.local_devices()) {
      if (workers_of.count(device.kind()) > 0) continue;
      Check check{absl::StrCat("device ", device.kind()), false, device.words(), "", device.state() == "failing"};
      if (device.state() == "looking") check.advice = "ask again in a minute: a driver may compile for seconds";
      if (device.state() == "found") check.advice = "its worker is starting: ask again in a few seconds";
      if (device.state() == "failing")
        check.advice = "read the log of fusiond, or leave the kind out of --local-devices";
      checks.push_back(check);
    }
    return checks;
  }

  static void CheckWorkers(Connection& connection, const v1::Capabilities& capabilities, std::vector<Check>* checks) {
    auto workers = connection.ListWorkers();
    if (!workers.ok()) return;
    std::vector<std::string> measuring, building;
    std::map<std::string, std::vector<std::string>> workers_of;
    Check confinement{"confinement", true, "",
                      "workers whose level is none run kernels that may do what their user may: start them on Linux "
                      "with seccomp, and without --unconfined",
                      false};
    Check known_by{
        "known by", true, "",
        "a worker renews its certificate when a third of its time is left, and says in its log why it cannot; "
        "one that has expired is replaced with a join token",
        false};
    for (const v1::WorkerStatus& worker : workers->workers()) {
      if (worker.state() == "lost") continue;
      if (const std::string known = KnownByInWords(worker); !known.empty()) {
        absl::StrAppend(&known_by.found, known_by.found.empty() ? "" : "; ", worker.info().name(), ": ", known);
      }
      known_by.ok = known_by.ok && !RenewalIsLate(worker, absl::Now());
      const auto level = worker.info().labels().find("confinement");  // an older worker does not say
      const std::string words = level == worker.info().labels().end() ? "unknown" : level->second;
      absl::StrAppend(&confinement.found, confinement.found.empty() ? "" : "; ", worker.info().name(), ": ", words);
      confinement.ok = confinement.ok && words != "none";
      for (const std::string& kind : worker.info().measure_kinds()) workers_of[kind].push_back(worker.info().name());
      if (worker.info().measure_kinds_size() > 0) measuring.push_back(worker.info().name());
      if (worker.info().toolchains_size() > 0) building.push_back(worker.info().name());
    }
    for (Check& check : CheckDevices(capabilities, workers_of)) checks->push_back(std::move(check));
    if (!confinement.found.empty()) checks->push_back(std::move(confinement));
    if (!known_by.found.empty()) checks->push_back(std::move(known_by));
    auto names = [](const std::vector<std::string>& workers) {
      return workers.empty() ? "no worker" : absl::StrJoin(workers, ", ");
    };
    checks->push_back({"measuring", !measuring.empty(), names(measuring),
                       "attach a worker: fusion-worker --server ADDRESS (without one, latencies are estimated)"});
    checks->push_back(
        {"building", !building.empty(), names(building), "attach a worker that has clang: apt-get install clang"});
  }

  void Print(const std::vector<Check>& checks) const {
    if (format_ == "json") {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const Check& check : checks) {
        list.push_back({{"check", check.what},
                        {"ok", check.ok},
                        {"needed", check.needed},
                        {"found", check.found},
                        {"advice", check.ok ? "" : check.advice}});
      }
      std::printf("%s\n", list.dump(2).c_str());
      return;
    }
    std::vector<std::vector<std::string>> rows;
    for (const Check& check : checks) {
      rows.push_back({check.ok ? "ok" : check.needed ? "PROBLEM" : "-", check.what, check.found});
      if (!check.ok && !check.advice.empty()) rows.push_back({"", "", absl::StrCat("→ ", check.advice)});
    }
    std::fputs(Table({}, rows).c_str(), stdout);
  }

  std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeDoctorVerb() { return std::make_unique<DoctorVerb>(); }

}  // namespace fusion
