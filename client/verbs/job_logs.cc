#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/job_log_text.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(500);

class JobLogsVerb : public Verb {
 public:
  std::string name() const override { return "job logs"; }
  std::string help() const override { return "what the server, the compilation and the workers said about a job"; }
  std::vector<Option> Options() override {
    return {{"JOB", "its name", &job_, true},
            {"--level", "no lines of lower levels", &level_, false, {"debug", "info", "warning", "error"}},
            {"--follow", "print new lines until the job has ended", &follow_},
            {"-o,--output", "how lines are printed: jsonl is an object a line", &format_, false, {"text", "jsonl"}}};
  }
  int Run(const CommonOptions& common) override {
    const auto connection = Connection::Open(common.endpoint);
    const auto job = connection->GetJob(job_);
    if (!job.ok()) return Fail(job.status());
    if (!job->trace_id().empty()) std::fprintf(stderr, "trace %s\n", job->trace_id().c_str());
    v1::JobLogsRequest request;
    request.set_job_id(job_);
    request.set_level(level_);
    bool any = false;
    while (true) {
      const auto page = connection->JobLogs(request);
      if (!page.ok()) return Fail(page.status());
      for (const v1::LogRecord& line : page->lines()) {
        Print(line);
        any = true;
      }
      std::fflush(stdout);
      request.set_after(page->next_after());
      if (page->more()) continue;
      if (page->ended() || !follow_) break;
      absl::SleepFor(kPause);
    }
    if (!any)
      std::fprintf(stderr, "%s has no such lines; a job that is answered from the store has none\n", job_.c_str());
    return kExitOk;
  }

 private:
  void Print(const v1::LogRecord& line) {
    if (format_ == "jsonl") {
      std::printf("%s\n", ProtoToJson(line, -1).c_str());
      return;
    }
    // Lines of lower levels are not printed either, and are no gap.
    if (level_ == "debug" && last_number_ > 0 && line.number() > last_number_ + 1) {
      std::printf("… %s left out\n", Plural(line.number() - last_number_ - 1, "line").c_str());
    }
    last_number_ = line.number();
    std::printf("%s\n", JobLogLineInWords(line).c_str());
  }

  std::string job_, level_ = "debug", format_ = "text";
  bool follow_ = false;
  int64_t last_number_ = 0;
};

}  // namespace

std::unique_ptr<Verb> MakeJobLogsVerb() { return std::make_unique<JobLogsVerb>(); }

}  // namespace fusion
