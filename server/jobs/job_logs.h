// JobLogs: what server, compilations and workers said about each job, kept with the job: lines of JSON in files of
// their own, which are never synced, because a commit for each line would cost more than the work that the line is
// about.
//
// A job's log is bounded: its first lines stay, and of the others the last ones. Lines have numbers, so that a reader
// sees where some are missing. Jobs that were answered from the store have no log.
#ifndef FUSION_SERVER_JOBS_JOB_LOGS_H_
#define FUSION_SERVER_JOBS_JOB_LOGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "runtime/log/log.h"

namespace fusion {

// A line of a job's log. `source`: "server", "compilation", "worker NAME".
struct JobLogLine {
  int64_t number = 0, time_ms = 0;
  std::string source;
  LogLine line;
};

class JobLogs {
 public:
  static constexpr int64_t kMostBytes = 256 << 10;  // of a job's log

  // Makes the folder where it is missing. `most_bytes` bounds each log.
  static absl::StatusOr<std::unique_ptr<JobLogs>> Open(std::string folder, int64_t most_bytes = kMostBytes);
  ~JobLogs();

  // From now on lines about the job are kept, and Tee adds the trace to each. After a restart they follow those that
  // are there.
  void Begin(const std::string& job, const std::string& trace);
  // The trace of a job that has begun and not ended; else "".
  std::string TraceOf(const std::string& job) const;
  // Lines about the job are kept no longer.
  void End(const std::string& job);
  // Keeps a line about a job that has begun. The field "source", if the line has one, is the line's source. What cannot
  // be written is lost, with all that follows in that log until the disk takes lines again. Thread-safe, like all.
  void Append(const std::string& job, const std::string& source, const LogLine& line);

  // A log that also keeps the lines with the field "job" of jobs that have begun, and gives them the field "trace".
  // The object must outlive it.
  Log Tee(Log inner);

  struct Page {
    std::vector<JobLogLine> lines;  // in order
    bool more = false;
  };
  // Returns at most `limit` lines (and about `most_bytes`) of `least` level or above, whose numbers are above `after`.
  // A job without a log has no lines.
  absl::StatusOr<Page> Read(const std::string& job, int64_t after, int limit, LogLevel least, size_t most_bytes) const;

  // Removes the logs of jobs that have ended, if their last line is older. Returns how many.
  int64_t Expire(int64_t before_ms);

 private:
  struct Live {
    std::string trace;
    int fd = -1;              // of the part that is written; -1: not open
    int64_t next_number = 0;  // 0: unknown yet
    bool in_head = true;      // the part that is written is the first
    int64_t part_bytes = 0;
  };
  JobLogs(std::string folder, int64_t most_bytes) : folder_(std::move(folder)), most_bytes_(most_bytes) {}

  std::string PathOf(const std::string& job, const char* part) const;
  bool OpenPart(const std::string& job, Live* live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClosePart(Live* live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const int64_t most_bytes_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Live> live_ ABSL_GUARDED_BY(mutex_);
  int open_files_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Whether the text may be a trace id: 32 lower-case hex digits, not all zero.
bool IsTraceId(const std::string& text);
std::string NewTraceId();
// The level of that name (LogLevels()), or kDebug.
LogLevel LogLevelOf(const std::string& name);

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_JOB_LOGS_H_
