#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/api/address.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

struct Check {
  std::string what;
  bool ok = false;
  std::string found;
  std::string advice;  // when not ok
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
    std::vector<Check> checks = {CheckProcessor(), CheckFolder("state", StateFolder()),
                                 CheckFolder("cache", CacheFolder())};
    auto connection = Connection::Open(common.server);
    auto capabilities = connection->GetCapabilities(absl::Seconds(3));
    if (capabilities.ok()) {
      checks.push_back({"server", true, absl::StrCat(common.server, ", version ", capabilities->server_version()), ""});
      checks.push_back({"versions", capabilities->server_version() == FUSION_VERSION,
                        absl::StrCat("client ", FUSION_VERSION, ", server ", capabilities->server_version()),
                        "update the older of the two"});
      CheckWorkers(*connection, &checks);
    } else {
      checks.push_back({"server", false, std::string(capabilities.status().message()),
                        "start one with `fusiond`, or name one with --server or FUSION_SERVER"});
    }
    Print(checks);
    if (!capabilities.ok()) return ExitCodeOf(capabilities.status());
    for (const Check& check : checks) {
      if (!check.ok) return kExitFailed;
    }
    return kExitOk;
  }

 private:
  static void CheckWorkers(Connection& connection, std::vector<Check>* checks) {
    auto workers = connection.ListWorkers();
    if (!workers.ok()) return;
    std::vector<std::string> measuring, building;
    for (const v1::WorkerStatus& worker : workers->workers()) {
      if (worker.state() == "lost") continue;
      if (worker.info().measure_kinds_size() > 0) measuring.push_back(worker.info().name());
      if (worker.info().toolchains_size() > 0) building.push_back(worker.info().name());
    }
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
                        {"found", check.found},
                        {"advice", check.ok ? "" : check.advice}});
      }
      std::printf("%s\n", list.dump(2).c_str());
      return;
    }
    std::vector<std::vector<std::string>> rows;
    for (const Check& check : checks) {
      rows.push_back({check.ok ? "ok" : "PROBLEM", check.what, check.found});
      if (!check.ok) rows.push_back({"", "", absl::StrCat("→ ", check.advice)});
    }
    std::fputs(Table({}, rows).c_str(), stdout);
  }

  std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeDoctorVerb() { return std::make_unique<DoctorVerb>(); }

}  // namespace fusion
