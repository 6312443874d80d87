// The steps that submit, plan and verify share: compilation options, preparing the model, following the job, fetching
// the bundle.
#ifndef FUSION_CLIENT_VERBS_SUBMISSION_H_
#define FUSION_CLIENT_VERBS_SUBMISSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/api/connection.h"
#include "client/cli/progress.h"
#include "client/cli/verb.h"

namespace fusion {

struct CompilationFlags {
  std::string target = "cpu";  // some verbs take several, "cpu,opencl": TargetsOf
  std::string planner;         // "": the server's choice
  std::string math = "fast", precision = "fp32", size = "any", tune = "quick";
  std::vector<std::string> dims;    // "batch=1", "seq=32,128"
  std::vector<std::string> shapes;  // "input=1x3x224x224"
  std::vector<std::string> disabled_rules;
  std::vector<std::string> require;  // "name=rack7", "rack=7"
  int64_t threads = 1;
  int64_t queue_timeout_s = 0;
  std::string priority = "normal";  // or "low", "high", or a number
};
// Adds to `options` those that decide the plan: --target, --planner, --math, --precision, --size, --disable-rule,
// --dim, --shape, --threads.
void AddPlanFlags(CompilationFlags* flags, std::vector<Option>* options);
// Adds the options that only a building job needs: --tune, --queue-timeout, --priority.
void AddJobFlags(CompilationFlags* flags, std::vector<Option>* options);

// Returns the kinds of --target, in its order. Fails with a usage error for an empty or a repeated one.
absl::StatusOr<std::vector<std::string>> TargetsOf(const CompilationFlags& flags);

// Opens the model, uploads what the server lacks and fills the request for one target. Reports on `progress`.
absl::StatusOr<v1::SubmitRequest> PrepareSubmission(Connection& connection, const std::string& model_path,
                                                    const CompilationFlags& flags, Progress& progress);

struct Compilation {
  v1::SubmitResponse submitted;
  v1::JobEvent last;  // the final event: SUCCEEDED
};
// Submits the job once, however often its answer is lost, and waits where the server says so: as long as the queue
// timeout of the request, or a minute.
absl::StatusOr<v1::SubmitResponse> SubmitPatiently(Connection& connection, v1::SubmitRequest request,
                                                   Progress& progress);
// The same, and prints its name on `progress`, after `prefix`.
absl::StatusOr<v1::SubmitResponse> SubmitJob(Connection& connection, const v1::SubmitRequest& request,
                                             Progress& progress, const std::string& prefix = "");

// Submits the job and follows it to the end. Fails with a failed job's error, or with CANCELLED for a cancelled one.
absl::StatusOr<Compilation> CompileRemotely(Connection& connection, const v1::SubmitRequest& request,
                                            Progress& progress);

// Follows `job_id` from `resume_seq`. Fails with the job's error if its final event is not SUCCEEDED.
absl::StatusOr<v1::JobEvent> FollowJob(Connection& connection, const std::string& job_id, int64_t resume_seq,
                                       Progress& progress);
// The same, but an event with an early bundle ends it, too, and is returned.
absl::StatusOr<v1::JobEvent> FollowToFirstBundle(Connection& connection, const std::string& job_id, Progress& progress);

// Fails with a usage error if no file can be made at `path`, so that this is known before the compilation.
absl::Status CheckOutputPath(const std::string& path);

// Writes the bundle to `path` completely or not at all, and checks its digest on the way. Fetches nothing if it is
// already there.
absl::Status DownloadBundle(Connection& connection, const v1::BundleInfo& bundle, const std::string& path,
                            Progress& progress);

// Downloads a job's bundle, or its early one, and writes the signatures beside it if the server signs.
absl::Status FetchBundle(Connection& connection, const std::string& job_id, const v1::BundleInfo& bundle, bool early,
                         const std::string& path, Progress& progress);

// Prints the path, the size and the digest of a fetched bundle on stdout, and `note` behind them.
void PrintFetched(const std::string& path, const v1::BundleInfo& bundle, const std::string& note = "");

// Prints the lines about the result: planned, profiled, built.
void PrintAccount(const v1::Account& account, Progress& progress);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_SUBMISSION_H_
