#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/known_by.h"
#include "client/verbs/verbs.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

std::string BuildsWith(const v1::WorkerInfo& info) {
  std::vector<std::string> builds;
  for (const v1::ToolchainInfo& toolchain : info.toolchains()) builds.push_back(toolchain.version());
  return builds.empty() ? "-" : absl::StrJoin(builds, ",");
}

std::string Measures(const v1::WorkerInfo& info) {
  return info.measure_kinds().empty() ? "-" : absl::StrJoin(info.measure_kinds(), ",");
}

std::string SeenAgo(const v1::WorkerStatus& worker) {
  return absl::StrFormat("%.0fs ago",
                         static_cast<double>(absl::ToUnixMillis(absl::Now()) - worker.last_seen_ms()) * 1e-3);
}

std::string DrainInWords(const v1::DrainedWorker& drained) {
  const std::string from = drained.from_ms() > drained.since_ms()
                               ? absl::StrCat("from ", TimeInWords(drained.from_ms()))
                               : absl::StrCat("since ", TimeInWords(drained.since_ms()));
  const std::string until = drained.until_ms() > 0 ? absl::StrCat(" until ", TimeInWords(drained.until_ms())) : "";
  return absl::StrCat(from, until, " by ", drained.by(), drained.reason().empty() ? "" : ": ", drained.reason());
}

// Those that are not attached: the others stand in the table.
void PrintDrained(const v1::ListWorkersResponse& workers) {
  for (const v1::DrainedWorker& drained : workers.drained()) {
    const bool attached = std::any_of(workers.workers().begin(), workers.workers().end(), [&](const auto& worker) {
      return (drained.quarantined() ? worker.source() : worker.info().name()) == drained.name();
    });
    if (attached) continue;
    std::fprintf(stderr, "%s is not attached, and %s %s\n", drained.name().c_str(),
                 drained.quarantined() ? "quarantined" : "drained", DrainInWords(drained).c_str());
  }
}

class WorkerListVerb : public Verb {
 public:
  std::string name() const override { return "worker list"; }
  std::string help() const override { return "workers attached to the server"; }
  std::vector<Option> Options() override { return {{"--limit", "how many (0: all)", &limit_}, OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto workers = Connection::Open(common.endpoint)->ListWorkers(RowsOf(limit_));
    if (!workers.ok()) return Fail(workers.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*workers).c_str());
      return kExitOk;
    }
    std::vector<std::vector<std::string>> rows;
    for (const v1::WorkerStatus& worker : workers->workers()) {
      rows.push_back({worker.info().name(), worker.state(), Measures(worker.info()), BuildsWith(worker.info()),
                      absl::StrCat(worker.tasks_done()), absl::StrCat(worker.tasks_failed()), SeenAgo(worker),
                      worker.task().empty() ? "-" : worker.task(), worker.worker_id()});
    }
    if (limit_ == 0) PrintDrained(*workers);
    std::fputs(
        Table({"NAME", "STATE", "MEASURES", "BUILDS WITH", "DONE", "FAILED", "SEEN", "TASK", "ID"}, rows).c_str(),
        stdout);
    return kExitOk;
  }

 private:
  int64_t limit_ = 0;
  std::string format_ = "table";
};

// The rows of a device's model that say what it is and how fast.
void AddDevice(const std::string& model_json, std::vector<std::vector<std::string>>* rows) {
  const nlohmann::json model = nlohmann::json::parse(model_json, nullptr, /*allow_exceptions=*/false);
  if (!model.is_object()) return;
  const auto number = [&](const char* name) {
    const auto field = model.find(name);
    return field != model.end() && field->is_number() ? field->get<double>() : 0.0;
  };
  const auto text = [&](const char* name) {
    const auto field = model.find(name);
    return field != model.end() && field->is_string() ? field->get<std::string>() : std::string();
  };
  rows->push_back({"device", text("name")});
  rows->push_back({"isa", absl::StrCat(text("isa"), ", vectors of ", number("vector_bytes"), " bytes, ",
                                       number("parallel_units"), " units")});
  rows->push_back({"arithmetic", absl::StrFormat("%.1f GFLOP/s of fp32 a unit", number("fma_f32_flops_per_s") * 1e-9)});
  rows->push_back(
      {"a launch", absl::StrFormat("%.2f µs, a barrier %.2f µs", number("launch_s") * 1e6, number("barrier_s") * 1e6)});
  const auto memory = model.find("memory");
  if (memory == model.end() || !memory->is_array()) return;
  for (const nlohmann::json& level : *memory) {
    if (!level.is_object() || !level.contains("name") || !level["name"].is_string()) continue;
    const int64_t bytes = level.value("size_bytes", int64_t{0});
    rows->push_back({level["name"].get<std::string>(),
                     absl::StrCat(bytes > 0 ? BytesInWords(bytes) + ", " : "",
                                  absl::StrFormat("%.1f GB/s", level.value("bandwidth_bytes_per_s", 0.0) * 1e-9))});
  }
}

class WorkerDescribeVerb : public Verb {
 public:
  std::string name() const override { return "worker describe"; }
  std::string help() const override {
    return "one worker: its device as it measured it, what it does, why it is drained";
  }
  std::vector<Option> Options() override {
    return {{"WORKER", "its name or id", &worker_, true}, OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    auto workers = Connection::Open(common.endpoint)->ListWorkers();
    if (!workers.ok()) return Fail(workers.status());
    bool found = false;
    for (const v1::WorkerStatus& worker : workers->workers()) {
      if (worker.info().name() != worker_ && worker.worker_id() != worker_) continue;
      if (format_ == "json") {
        std::printf("%s\n", ProtoToJson(worker).c_str());
      } else {
        Print(worker, workers->drained(), found);
      }
      found = true;
    }
    if (found) return kExitOk;
    return Fail(
        absl::NotFoundError(absl::StrCat("no worker '", worker_, "' is attached; `fusionctl worker list` names them")));
  }

 private:
  template <typename Drained>
  static void Print(const v1::WorkerStatus& worker, const Drained& all_drained, bool another) {
    const v1::WorkerInfo& info = worker.info();
    std::vector<std::vector<std::string>> rows = {
        {"worker", info.name()},
        {"id", worker.worker_id()},
        {"state", worker.state()},
        {"version", absl::StrCat(info.version(), ", protocol ", info.protocol())},
        {"measures", Measures(info)},
        {"builds with", BuildsWith(info)},
        {"tasks", absl::StrCat(worker.tasks_done(), " done, ", worker.tasks_failed(), " failed")},
        {"task", worker.task().empty() ? "-" : worker.task()},
        {"seen", SeenAgo(worker)}};
    for (const v1::DrainedWorker& drained : all_drained) {
      if (drained.name() != info.name() && drained.name() != worker.source()) continue;
      rows.push_back({drained.quarantined() ? "quarantined" : "drained", DrainInWords(drained)});
    }
    if (!worker.known_by().empty()) rows.push_back({"known by", KnownByInWords(worker)});
    if (!worker.source().empty()) rows.push_back({"source", worker.source()});
    if (!worker.trust().empty()) rows.push_back({"measurements", worker.trust()});
    if (!worker.fingerprint().empty()) rows.push_back({"fingerprint", worker.fingerprint()});
    AddDevice(info.device_model_json(), &rows);
    std::printf("%s%s", another ? "\n" : "", Table({}, rows).c_str());
  }

  std::string worker_, format_ = "table";
};

class WorkerDrainVerb : public Verb {
 public:
  std::string name() const override { return "worker drain"; }
  std::string help() const override {
    return "let workers end what they run, and give them no new tasks until worker release, or for a while";
  }
  std::vector<Option> Options() override {
    return {{"NAME", "of the workers; ids change with every start", &request_name_, true},
            {"--reason", "for whoever asks why", &reason_},
            {"--from", "when it begins: '2026-12-24 22:00', 22:00 or 2026-12-24T22:00:00Z (default: at once)", &from_},
            {"--until", "when it ends, as --from (default: with worker release)", &until_},
            {"--for", "how long it lasts: 90d, 12h, 30m or 45s", &for_}};
  }
  int Run(const CommonOptions& common) override {
    v1::DrainWorkerRequest request;
    request.set_name(request_name_);
    request.set_reason(reason_);
    if (const absl::Status window = FillWindow(&request); !window.ok()) return Fail(window);
    const auto drained = Connection::Open(common.endpoint)->DrainWorker(request);
    if (!drained.ok()) return Fail(drained.status());
    const std::string until = request.until_ms() > 0 ? TimeInWords(request.until_ms())
                                                     : absl::StrCat("`fusionctl worker release ", request_name_, "`");
    std::printf("%s is drained%s until %s; what it runs goes on\n", request_name_.c_str(),
                from_.empty() ? "" : absl::StrCat(" from ", TimeInWords(request.from_ms())).c_str(), until.c_str());
    return kExitOk;
  }

 private:
  absl::Status FillWindow(v1::DrainWorkerRequest* request) {
    const absl::Time now = absl::Now();
    absl::Time from = now;
    if (!until_.empty() && !for_.empty()) return UsageError("--until and --for: say one of them");
    if (!from_.empty()) {
      ASSIGN_OR_RETURN(from, ParseMoment("--from", from_, now, absl::LocalTimeZone()));
      request->set_from_ms(absl::ToUnixMillis(from));
    }
    if (!until_.empty()) {
      ASSIGN_OR_RETURN(const absl::Time until, ParseMoment("--until", until_, from, absl::LocalTimeZone()));
      request->set_until_ms(absl::ToUnixMillis(until));
    }
    if (!for_.empty()) {
      ASSIGN_OR_RETURN(const absl::Duration lasts, ParseAge("--for", for_));
      request->set_until_ms(absl::ToUnixMillis(from + lasts));
    }
    if (request->until_ms() > 0 && request->until_ms() <= absl::ToUnixMillis(std::max(from, now))) {
      return UsageError("the window is over before it begins");
    }
    return absl::OkStatus();
  }

  std::string request_name_, reason_, from_, until_, for_;
};

class WorkerQuarantineVerb : public Verb {
 public:
  std::string name() const override { return "worker quarantine"; }
  std::string help() const override {
    return "take a worker's measurements since the last that another one confirmed out of use, and give it no tasks";
  }
  std::vector<Option> Options() override {
    return {{"NAME", "of the worker, or its source (worker describe); imported/SOURCE: what was imported of one",
             &request_name_, true},
            {"--reason", "for whoever asks why", &reason_}};
  }
  int Run(const CommonOptions& common) override {
    v1::QuarantineWorkerRequest request;
    request.set_name(request_name_);
    request.set_reason(reason_);
    const auto quarantined = Connection::Open(common.endpoint)->QuarantineWorker(request);
    if (!quarantined.ok()) return Fail(quarantined.status());
    std::printf("'%s' is quarantined until `fusionctl worker release '%s'`\n", quarantined->name().c_str(),
                quarantined->name().c_str());
    return kExitOk;
  }

 private:
  std::string request_name_, reason_;
};

class WorkerReleaseVerb : public Verb {
 public:
  std::string name() const override { return "worker release"; }
  std::string help() const override {
    return "give drained or quarantined workers tasks again, and put the latter's measurements back into use";
  }
  std::vector<Option> Options() override { return {{"NAME", "of the workers", &request_name_, true}}; }
  int Run(const CommonOptions& common) override {
    v1::ReleaseWorkerRequest request;
    request.set_name(request_name_);
    const auto released = Connection::Open(common.endpoint)->ReleaseWorker(request);
    if (!released.ok()) return Fail(released.status());
    std::printf("%s takes tasks again; it was %s %s\n", request_name_.c_str(),
                released->quarantined() ? "quarantined" : "drained", DrainInWords(*released).c_str());
    return kExitOk;
  }

 private:
  std::string request_name_;
};

}  // namespace

std::unique_ptr<Verb> MakeWorkerListVerb() { return std::make_unique<WorkerListVerb>(); }
std::unique_ptr<Verb> MakeWorkerDescribeVerb() { return std::make_unique<WorkerDescribeVerb>(); }
std::unique_ptr<Verb> MakeWorkerDrainVerb() { return std::make_unique<WorkerDrainVerb>(); }
std::unique_ptr<Verb> MakeWorkerQuarantineVerb() { return std::make_unique<WorkerQuarantineVerb>(); }
std::unique_ptr<Verb> MakeWorkerReleaseVerb() { return std::make_unique<WorkerReleaseVerb>(); }

}  // namespace fusion
