#include "worker/executor/measure_executor.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <string>

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
  std::string path = folder + "/fusion-measure-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return absl::UnavailableError(absl::StrCat("cannot make a file in ", folder));
  auto remove = absl::MakeCleanup([&] { unlink(path.c_str()); });
  const absl::Status written = WriteAll(fd, payload);
  close(fd);
  RETURN_IF_ERROR(written);

  ChildOptions options;
  options.deadline = options_.deadline;
  if (task.timeout_ms() > 0) options.deadline = std::min(options.deadline, absl::Milliseconds(task.timeout_ms()));
  options.cancelled = context.cancelled;
  const int threads = task.threads() > 0 ? task.threads() : options_.default_threads;
  absl::StatusOr<ChildResult> child = RunChild({options_.program, path, "--threads", absl::StrCat(threads)}, options);
  if (!child.ok())
    return absl::UnavailableError(absl::StrCat("cannot measure: ", std::string(child.status().message())));
  if (child->cancelled) return absl::CancelledError("the measurement was cancelled");
  if (!child->ok()) {
    const std::string message = absl::StrCat("the process that measured '", task.description(), "' ", child->Describe(),
                                             ". It said: ", LastWords(child->stderr_text));
    return child->timed_out ? absl::DeadlineExceededError(message) : absl::InternalError(message);
  }
  ASSIGN_OR_RETURN(MeasureSummary summary, SummaryFromJson(child->stdout_text));
  v1::MeasureResult result;
  for (double sample : summary.samples_ns) result.add_samples_ns(sample);
  result.set_min_ns(summary.min_ns);
  result.set_median_ns(summary.median_ns);
  result.set_p90_ns(summary.p90_ns);
  result.set_peak_ratio(summary.peak_ratio);
  return result.SerializeAsString();
}

}  // namespace fusion
