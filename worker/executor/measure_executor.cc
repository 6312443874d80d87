#include "worker/executor/measure_executor.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
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

std::string LastWords(const std::string& text) {
  constexpr size_t kMaxBytes = 1500;
  return text.size() <= kMaxBytes ? text : absl::StrCat("…", text.substr(text.size() - kMaxBytes));
}

}  // namespace

absl::StatusOr<std::string> MeasureExecutor::Execute(const v1::Task& task, const std::string& payload,
                                                     const TaskContext& context) {
  std::string folder = options_.temp_folder;
  if (folder.empty()) {
    const char* named = getenv("TMPDIR");
    folder = named != nullptr && *named != 0 ? named : "/tmp";
  }
  v1::MeasurePayload request;
  if (!request.ParseFromString(payload) || request.items().empty()) {
    return absl::InvalidArgumentError("the payload is no MeasurePayload");
  }
  std::vector<std::string> paths;
  auto remove = absl::MakeCleanup([&] {
    for (const std::string& path : paths) unlink(path.c_str());
  });
  for (const v1::MeasureItem& item : request.items()) {
    std::string path = folder + "/fusion-measure-XXXXXX";
    const int fd = mkstemp(path.data());
    if (fd < 0) return absl::UnavailableError(absl::StrCat("cannot make a file in ", folder));
    paths.push_back(path);
    const absl::Status written = WriteAll(fd, item.bundle());
    close(fd);
    RETURN_IF_ERROR(written);
  }
  ChildOptions options;
  options.deadline = options_.deadline;
  if (task.timeout_ms() > 0) options.deadline = std::min(options.deadline, absl::Milliseconds(task.timeout_ms()));
  options.cancelled = context.cancelled;
  const int threads = task.threads() > 0 ? task.threads() : options_.default_threads;
  std::vector<std::string> command = {options_.program, "--threads", absl::StrCat(threads)};
  if (!task.job_id().empty()) command.insert(command.end(), {"--job", task.job_id()});
  command.insert(command.end(), paths.begin(), paths.end());
  absl::StatusOr<ChildResult> child = RunChild(command, options);
  if (!child.ok())
    return absl::UnavailableError(absl::StrCat("cannot measure: ", std::string(child.status().message())));
  if (child->cancelled) return absl::CancelledError("the measurement was cancelled");
  if (!child->ok()) {
    const std::string message = absl::StrCat("the process that measured '", task.description(), "' ", child->Describe(),
                                             ". It said: ", LastWords(child->stderr_text));
    return child->timed_out ? absl::DeadlineExceededError(message) : absl::InternalError(message);
  }
  ASSIGN_OR_RETURN(const std::vector<MeasureSummary> summaries, SummariesFromJson(child->stdout_text));
  if (static_cast<int>(summaries.size()) != request.items_size()) {
    return absl::InternalError(absl::StrCat("the measuring process printed ", summaries.size(), " summaries of ",
                                            request.items_size(), " bundles"));
  }
  v1::MeasureResults results;
  for (const MeasureSummary& summary : summaries) {
    v1::MeasureResult& result = *results.add_results();
    for (double sample : summary.samples_ns) result.add_samples_ns(sample);
    result.set_min_ns(summary.min_ns);
    result.set_median_ns(summary.median_ns);
    result.set_p90_ns(summary.p90_ns);
    result.set_peak_ratio(summary.peak_ratio);
  }
  return results.SerializeAsString();
}

}  // namespace fusion
