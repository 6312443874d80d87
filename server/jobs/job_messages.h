// Converts between the compiler's types, the store's rows and the wire's messages.
#ifndef FUSION_SERVER_JOBS_JOB_MESSAGES_H_
#define FUSION_SERVER_JOBS_JOB_MESSAGES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "compiler/pipeline/compile.h"
#include "db/stores/store.h"
#include "proto/compile.pb.h"
#include "server/scheduler/device_wish.h"

namespace fusion {

// Fills defaults and checks ranges. Fails with INVALID_ARGUMENT and names the option. The planner is by default "auto"
// where it is one of `planners`, the target is a processor and `tune` is not "off", and otherwise that of
// CompileOptions.
absl::StatusOr<CompileOptions> OptionsFromProto(const v1::CompileOptionsProto& proto,
                                                const std::vector<std::string>& planners);

// Returns a key of everything that a compilation's answer depends on. The model's name is not part of it.
std::string JobKey(const v1::SubmitRequest& request, const CompileOptions& options, const std::string& fingerprint);

// Sets the name of the row's model, which is the same for equal files whatever they are called, and its blobs.
void NameModel(const v1::SubmitRequest& request, JobRow* job);

// The trace of the submission that made the job; "" for one from before traces.
std::string TraceOf(const JobRow& job);
// How long the submission waits for a worker: what it says, or ten minutes.
absl::Duration QueueTimeout(const v1::SubmitRequest& request);
// How long it waits for a place among the compilations: what it says, or for ever.
absl::Duration PlaceTimeout(const v1::SubmitRequest& request);
DeviceWish WishOf(const v1::SubmitRequest& request, const std::string& target);

int64_t UnixMillisNow();
// An event of now; `message` is cut.
v1::JobEvent MakeJobEvent(v1::JobState state, const std::string& stage, const std::string& message);

v1::Account AccountToProto(const CompileAccount& account);
v1::RewriteProto RewriteToProto(const RewriteAccount& rewrite);
// `key`: of its row in the results table.
v1::BundleInfo BundleInfoOf(const std::string& digest, int64_t size_bytes, const std::string& key);
v1::Job JobToProto(const JobRow& row);
v1::ErrorInfo ErrorToProto(const absl::Status& status);  // cuts the message at 4 KiB
std::string CutMessage(absl::string_view message);       // at 4 KiB, on a character boundary

// Returns "j-7Q2M…": 10 characters from an alphabet of 32, drawn from the system's random source.
std::string NewJobId();

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_JOB_MESSAGES_H_
