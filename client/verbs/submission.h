// What submit, plan and verify share: options of a compilation, preparing the model, following the job, fetching the
// bundle.
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
  std::string target = "cpu";  // "cpu,opencl" where a verb takes several: TargetsOf
  std::string planner = "dnnfusion", math = "fast", precision = "fp32", size = "any", tune = "quick";
  std::vector<std::string> dims;    // "batch=1", "seq=32,128"
  std::vector<std::string> shapes;  // "input=1x3x224x224"
  std::vector<std::string> disabled_rules;
  int64_t threads = 1;
  int64_t queue_timeout_s = 0;
};
// Declares on `options` what decides the plan: --target, --planner, --math, --precision, --size, --disable-rule, --dim,
// --shape,
// --threads.
void AddPlanFlags(CompilationFlags* flags, std::vector<Option>* options);
// And what only a job that builds asks for: --tune, --queue-timeout.
void AddJobFlags(CompilationFlags* flags, std::vector<Option>* options);

// The kinds of --target, in its order; a usage error for an empty or a repeated one.
absl::StatusOr<std::vector<std::string>> TargetsOf(const CompilationFlags& flags);

// Opens the model, uploads what the server lacks and fills the request, for one target; says so on `progress`.
absl::StatusOr<v1::SubmitRequest> PrepareSubmission(Connection& connection, const std::string& model_path,
                                                    const CompilationFlags& flags, Progress& progress);

struct Compilation {
  v1::SubmitResponse submitted;
  v1::JobEvent last;  // the final event: SUCCEEDED
};
// Asks for the job and tells its name on `progress`, behind `prefix`.
absl::StatusOr<v1::SubmitResponse> SubmitJob(Connection& connection, const v1::SubmitRequest& request,
                                             Progress& progress, const std::string& prefix = "");

// Submits, follows to the end. A failed job is its error; a cancelled one CANCELLED.
absl::StatusOr<Compilation> CompileRemotely(Connection& connection, const v1::SubmitRequest& request,
                                            Progress& progress);

// Follows `job_id` from `resume_seq`; a final event that is not SUCCEEDED becomes its error.
absl::StatusOr<v1::JobEvent> FollowJob(Connection& connection, const std::string& job_id, int64_t resume_seq,
                                       Progress& progress);

// A usage error where no file could be made at `path`: known before a compilation, not after it.
absl::Status CheckOutputPath(const std::string& path);

// The bundle into `path`, whole or not at all; its digest is checked on the way. Nothing is fetched if it is there.
absl::Status DownloadBundle(Connection& connection, const v1::BundleInfo& bundle, const std::string& path,
                            Progress& progress);

// The lines that say what came out: planned, profiled, built.
void PrintAccount(const v1::Account& account, Progress& progress);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_SUBMISSION_H_
