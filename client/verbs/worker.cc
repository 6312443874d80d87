#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

class WorkerListVerb : public Verb {
 public:
  std::string name() const override { return "worker list"; }
  std::string help() const override { return "workers attached to the server"; }
  std::vector<Option> Options() override { return {OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto workers = Connection::Open(common.endpoint)->ListWorkers();
    if (!workers.ok()) return Fail(workers.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*workers).c_str());
      return kExitOk;
    }
    const int64_t now = absl::ToUnixMillis(absl::Now());
    std::vector<std::vector<std::string>> rows;
    for (const v1::WorkerStatus& worker : workers->workers()) {
      std::vector<std::string> builds;
      for (const v1::ToolchainInfo& toolchain : worker.info().toolchains()) builds.push_back(toolchain.version());
      const std::string measures = absl::StrJoin(worker.info().measure_kinds(), ",");
      rows.push_back({worker.info().name(), worker.state(), measures.empty() ? "-" : measures,
                      builds.empty() ? "-" : absl::StrJoin(builds, ","), absl::StrCat(worker.tasks_done()),
                      absl::StrCat(worker.tasks_failed()),
                      absl::StrFormat("%.0fs ago", static_cast<double>(now - worker.last_seen_ms()) * 1e-3),
                      worker.task().empty() ? "-" : worker.task(), worker.worker_id()});
    }
    std::fputs(
        Table({"NAME", "STATE", "MEASURES", "BUILDS WITH", "DONE", "FAILED", "SEEN", "TASK", "ID"}, rows).c_str(),
        stdout);
    return kExitOk;
  }

 private:
  std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeWorkerListVerb() { return std::make_unique<WorkerListVerb>(); }

}  // namespace fusion
