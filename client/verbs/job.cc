#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/checks.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

std::string StateWord(v1::JobState state) { return absl::AsciiStrToLower(v1::JobState_Name(state)); }

std::string Took(const v1::Job& job) {
  if (job.started_ms() == 0 || job.finished_ms() == 0) return "-";
  return SecondsInWords(static_cast<double>(job.finished_ms() - job.started_ms()) * 1e-3);
}

std::string StagesInWords(const v1::Account& account) {
  std::vector<std::string> stages;
  for (const v1::StageTime& stage : account.stages()) {
    stages.push_back(absl::StrCat(stage.stage(), " ", SecondsInWords(stage.seconds())));
  }
  return absl::StrJoin(stages, ", ");
}

int PrintJob(const v1::Job& job, const std::string& format) {
  if (format == "json") {
    std::printf("%s\n", ProtoToJson(job).c_str());
    return kExitOk;
  }
  std::vector<std::vector<std::string>> rows = {{"job", job.job_id()},       {"state", StateWord(job.state())},
                                                {"model", job.model_name()}, {"target", job.target()},
                                                {"client", job.client_id()}, {"owner", job.owner()},
                                                {"key", job.key()},          {"created", TimeInWords(job.created_ms())},
                                                {"took", Took(job)}};
  if (job.priority() != 0) rows.push_back({"priority", absl::StrCat(job.priority())});
  if (job.pinned()) rows.push_back({"pinned", "yes"});
  if (!job.trace_id().empty()) rows.push_back({"trace", job.trace_id()});
  if (job.account().stages_size() > 0) rows.push_back({"stages", StagesInWords(job.account())});
  if (job.has_account()) {
    rows.push_back({"kernels", absl::StrCat(job.account().nodes_model(), " nodes → ", job.account().kernels())});
  }
  if (job.has_early_bundle()) {
    rows.push_back({"early bundle", absl::StrCat(BytesInWords(job.early_bundle().size_bytes()), "  sha256:",
                                                 job.early_bundle().digest(), "  key ", job.early_bundle().key())});
  }
  if (job.has_bundle() && !job.bundle().digest().empty()) {
    rows.push_back(
        {"bundle", absl::StrCat(BytesInWords(job.bundle().size_bytes()), "  sha256:", job.bundle().digest())});
  }
  if (job.checks().has_measurement()) rows.push_back({"measured", MeasurementInWords(job.checks().measurement())});
  if (job.checks().has_verification()) rows.push_back({"verified", VerificationInWords(job.checks().verification())});
  if (!job.error().message().empty()) rows.push_back({"error", job.error().message()});
  std::fputs(Table({}, rows).c_str(), stdout);
  return kExitOk;
}

class JobListVerb : public Verb {
 public:
  std::string name() const override { return "job list"; }
  std::string help() const override { return "jobs, newest first"; }
  std::vector<Option> Options() override { return {{"--limit", "how many", &limit_}, OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto jobs = Connection::Open(common.endpoint)->ListJobs(static_cast<int>(limit_));
    if (!jobs.ok()) return Fail(jobs.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*jobs).c_str());
      return kExitOk;
    }
    std::vector<std::vector<std::string>> rows;
    for (const v1::Job& job : jobs->jobs()) {
      rows.push_back({job.job_id(), StateWord(job.state()), job.model_name(), job.target(),
                      TimeInWords(job.created_ms()), Took(job)});
    }
    std::fputs(Table({"JOB", "STATE", "MODEL", "TARGET", "CREATED", "TOOK"}, rows).c_str(), stdout);
    return kExitOk;
  }

 private:
  int64_t limit_ = 50;
  std::string format_ = "table";
};

class JobGetVerb : public Verb {
 public:
  std::string name() const override { return "job get"; }
  std::string help() const override { return "one job: state, account, error"; }
  std::vector<Option> Options() override { return {{"JOB", "its name", &job_, true}, OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto job = Connection::Open(common.endpoint)->GetJob(job_);
    return job.ok() ? PrintJob(*job, format_) : Fail(job.status());
  }

 private:
  std::string job_, format_ = "table";
};

class JobWatchVerb : public Verb {
 public:
  std::string name() const override { return "job watch"; }
  std::string help() const override { return "follow a job to its end; exits as submit would have"; }
  std::vector<Option> Options() override {
    return {{"JOB", "its name", &job_, true},
            {"-o,--output", "fetch the bundle into this file when the job succeeds", &output_}};
  }
  int Run(const CommonOptions& common) override {
    auto connection = Connection::Open(common.endpoint);
    Progress progress(common.progress);
    auto last = FollowJob(*connection, job_, 0, progress);
    if (!last.ok()) return Fail(last.status());
    PrintAccount(last->account(), progress);
    PrintChecks(last->checks(), progress);
    if (!output_.empty()) {
      const absl::Status fetched = FetchBundle(*connection, job_, last->bundle(), false, output_, progress);
      if (!fetched.ok()) return FailLocal(fetched);
      PrintFetched(output_, last->bundle());
    } else {
      std::printf("%s succeeded; fetch its bundle with `fusionctl bundle get %s`\n", job_.c_str(), job_.c_str());
    }
    return JudgeChecks(last->checks());
  }

 private:
  std::string job_, output_;
};

class JobCancelVerb : public Verb {
 public:
  std::string name() const override { return "job cancel"; }
  std::string help() const override { return "stop a job"; }
  std::vector<Option> Options() override { return {{"JOB", "its name", &job_, true}, OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto job = Connection::Open(common.endpoint)->CancelJob(job_);
    return job.ok() ? PrintJob(*job, format_) : Fail(job.status());
  }

 private:
  std::string job_, format_ = "table";
};

// "job pin" and "job unpin".
class JobPinVerb : public Verb {
 public:
  explicit JobPinVerb(bool pinned) : pinned_(pinned) {}
  std::string name() const override { return pinned_ ? "job pin" : "job unpin"; }
  std::string help() const override {
    return pinned_ ? "keep a job with its model and its bundle until it is unpinned"
                   : "keep a job no longer than the server's rules say";
  }
  std::vector<Option> Options() override { return {{"JOB", "its name", &job_, true}, OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto job = Connection::Open(common.endpoint)->PinJob(job_, pinned_);
    return job.ok() ? PrintJob(*job, format_) : Fail(job.status());
  }

 private:
  const bool pinned_;
  std::string job_, format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeJobPinVerb() { return std::make_unique<JobPinVerb>(true); }
std::unique_ptr<Verb> MakeJobUnpinVerb() { return std::make_unique<JobPinVerb>(false); }
std::unique_ptr<Verb> MakeJobListVerb() { return std::make_unique<JobListVerb>(); }
std::unique_ptr<Verb> MakeJobGetVerb() { return std::make_unique<JobGetVerb>(); }
std::unique_ptr<Verb> MakeJobWatchVerb() { return std::make_unique<JobWatchVerb>(); }
std::unique_ptr<Verb> MakeJobCancelVerb() { return std::make_unique<JobCancelVerb>(); }

}  // namespace fusion
