#include "worker/executor/measure_executor.h"

#include <google/protobuf/util/json_util.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/process/child_process.h"
#include "runtime/base/status_macros.h"
#include "worker/measure/summary.h"

namespace fusion {
namespace {

absl::Status WriteAll(int fd, const std::string& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) return absl::ResourceExhaustedError("cannot write the bundle to be measured: is the disk full?");
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// Bundles in files of their own, which last as long as the object.
class BundleFiles {
 public:
  explicit BundleFiles(std::string folder) : folder_(std::move(folder)) {}
  ~BundleFiles() {
    for (const std::string& path : paths_) unlink(path.c_str());
  }
  BundleFiles(const BundleFiles&) = delete;
  BundleFiles& operator=(const BundleFiles&) = delete;

  absl::Status Add(const std::string& bundle) {
    std::string path = folder_ + "/fusion-measure-XXXXXX";
    const int fd = mkstemp(path.data());
    if (fd < 0) return absl::UnavailableError(absl::StrCat("cannot make a file in ", folder_));
    paths_.push_back(path);
    const absl::Status written = WriteAll(fd, bundle);
    close(fd);
    return written;
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  const std::string folder_;
  std::vector<std::string> paths_;
};

absl::Status ErrorOf(const ChildResult& child, const v1::Task& task) {
  if (child.cancelled) return absl::CancelledError("the measurement was cancelled");
  const std::string message = absl::StrCat("the process that measured '", task.description(), "' ", child.Describe(),
                                           ". It said: ", LastWords(child.stderr_text));
  return child.timed_out ? absl::DeadlineExceededError(message) : absl::InternalError(message);
}

}  // namespace

std::vector<std::string> MeasureExecutor::Command(const v1::Task& task, int threads) const {
  std::vector<std::string> command = {options_.program, "--threads", absl::StrCat(threads)};
  if (!options_.confine.empty()) command.insert(command.end(), {"--confine", options_.confine});
  if (options_.namespaces) command.emplace_back("--namespaces");
  if (!task.job_id().empty()) command.insert(command.end(), {"--job", task.job_id()});
  return command;
}

// For whole models the process prints the JSON form of the message.
absl::Status MeasureExecutor::RunWhole(const v1::Task& task,
                                       const std::vector<std::pair<std::string, int64_t>>& bundles,
                                       const std::string& flag, int threads, const std::string& folder,
                                       const TaskContext& context, google::protobuf::Message* result,
                                       std::string* not_done) {
  if (options_.read_blob == nullptr) return absl::UnavailableError("this worker reads no bundles of whole models");
  BundleFiles files(folder);
  for (const auto& [digest, size_bytes] : bundles) {
    const absl::StatusOr<std::string> bundle = options_.read_blob(digest, size_bytes);
    if (!bundle.ok()) {
      return absl::UnavailableError(absl::StrCat("cannot read the bundle: ", bundle.status().ToString()));
    }
    RETURN_IF_ERROR(files.Add(*bundle));
    if (context.cancelled()) return absl::CancelledError("cancelled");
  }
  ChildOptions options;
  options.deadline = options_.model_deadline;
  options.cancelled = context.cancelled;
  std::vector<std::string> command = Command(task, threads);
  command.insert(command.begin() + 1, flag);
  command.insert(command.end(), files.paths().begin(), files.paths().end());
  const absl::StatusOr<ChildResult> child = RunChild(command, options);
  if (!child.ok()) {
    return absl::UnavailableError(absl::StrCat("cannot run the model: ", std::string(child.status().message())));
  }
  if (child->timed_out) {
    *not_done = absl::StrCat("the model is too large: it did not finish within ",
                             absl::FormatDuration(options_.model_deadline));
    return absl::OkStatus();
  }
  if (!child->ok()) return ErrorOf(*child, task);
  const auto parsed = google::protobuf::util::JsonStringToMessage(child->stdout_text, result);
  if (!parsed.ok()) return absl::InternalError("the measuring process printed no result of a whole model");
  return absl::OkStatus();
}

absl::StatusOr<std::string> MeasureExecutor::RunModel(const v1::Task& task, const v1::ModelRun& model,
                                                      const std::string& folder, const TaskContext& context) {
  // All cores verify: their number does not change what is computed.
  const int threads = model.verify() ? 0 : task.threads() > 0 ? task.threads() : options_.default_threads;
  v1::MeasureResults results;
  google::protobuf::Message* message = results.mutable_measurement();
  if (model.verify()) {
    results.clear_measurement();
    message = results.mutable_verification();
  }
  std::string not_done;
  RETURN_IF_ERROR(RunWhole(
      task, {{model.bundle_digest(), model.bundle_size_bytes()}, {model.other_digest(), model.other_size_bytes()}},
      model.verify() ? "--verify" : "--models", threads, folder, context, message, &not_done));
  if (!not_done.empty() && model.verify()) results.mutable_verification()->set_not_done(not_done);
  if (!not_done.empty() && !model.verify()) results.mutable_measurement()->set_not_done(not_done);
  return results.SerializeAsString();
}

absl::StatusOr<std::string> MeasureExecutor::RunPlans(const v1::Task& task, const v1::PlanRun& plans,
                                                      const std::string& folder, const TaskContext& context) {
  const int threads = task.threads() > 0 ? task.threads() : options_.default_threads;
  v1::MeasureResults results;
  std::string not_done;
  RETURN_IF_ERROR(RunWhole(task, {{plans.bundle_digest(), plans.bundle_size_bytes()}}, "--plans", threads, folder,
                           context, results.mutable_plans(), &not_done));
  if (!not_done.empty()) results.mutable_plans()->set_not_done(not_done);
  return results.SerializeAsString();
}

absl::StatusOr<std::string> MeasureExecutor::Execute(const v1::Task& task, const std::string& payload,
                                                     const TaskContext& context) {
  std::string folder = options_.temp_folder;
  if (folder.empty()) {
    const char* named = getenv("TMPDIR");
    folder = named != nullptr && *named != 0 ? named : "/tmp";
  }
  v1::MeasurePayload request;
  if (!request.ParseFromString(payload) || (request.items().empty() && !request.has_model() && !request.has_plans())) {
    return absl::InvalidArgumentError("the payload is no MeasurePayload");
  }
  if (request.has_model()) return RunModel(task, request.model(), folder, context);
  if (request.has_plans()) return RunPlans(task, request.plans(), folder, context);
  BundleFiles files(folder);
  for (const v1::MeasureItem& item : request.items()) RETURN_IF_ERROR(files.Add(item.bundle()));
  BundleFiles sentinel(folder);
  if (!request.sentinel().empty()) RETURN_IF_ERROR(sentinel.Add(request.sentinel()));
  ChildOptions options;
  options.deadline = options_.deadline;
  if (task.timeout_ms() > 0) options.deadline = std::min(options.deadline, absl::Milliseconds(task.timeout_ms()));
  options.cancelled = context.cancelled;
  const int threads = task.threads() > 0 ? task.threads() : options_.default_threads;
  std::vector<std::string> command = Command(task, threads);
  if (request.canaries()) command.emplace_back("--canaries");
  for (const std::string& path : sentinel.paths()) command.insert(command.end(), {"--sentinel", path});
  command.insert(command.end(), files.paths().begin(), files.paths().end());
  absl::StatusOr<ChildResult> child = RunChild(command, options);
  if (!child.ok())
    return absl::UnavailableError(absl::StrCat("cannot measure: ", std::string(child.status().message())));
  if (!child->ok()) return ErrorOf(*child, task);
  ASSIGN_OR_RETURN(const std::vector<MeasureSummary> summaries, SummariesFromJson(child->stdout_text));
  const int expected = request.items_size() + (request.sentinel().empty() ? 0 : 1);
  if (static_cast<int>(summaries.size()) != expected) {
    return absl::InternalError(
        absl::StrCat("the measuring process printed ", summaries.size(), " summaries of ", expected, " bundles"));
  }
  v1::MeasureResults results;
  for (const MeasureSummary& summary : summaries) {
    const bool is_item = results.results_size() < request.items_size();
    v1::MeasureResult& result = is_item ? *results.add_results() : *results.mutable_sentinel();
    for (double sample : summary.samples_ns) result.add_samples_ns(sample);
    result.set_min_ns(summary.min_ns);
    result.set_median_ns(summary.median_ns);
    result.set_p90_ns(summary.p90_ns);
    result.set_peak_ratio(summary.peak_ratio);
    *result.mutable_outputs() = {summary.outputs.begin(), summary.outputs.end()};
  }
  return results.SerializeAsString();
}

}  // namespace fusion
