// JobLines: what this worker says about the job that it works for, until the next call takes it to the server, where it
// is kept with the job. Lines beyond a bound are dropped, the oldest first. Thread-safe.
#ifndef FUSION_WORKER_LEASE_JOB_LINES_H_
#define FUSION_WORKER_LEASE_JOB_LINES_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "proto/log.pb.h"
#include "runtime/log/log.h"

namespace fusion {

class JobLines {
 public:
  static constexpr size_t kMostLines = 200;
  static constexpr size_t kMostBytes = 256 << 10;  // together; a call holds 4 MiB, results among them
  static constexpr size_t kMostTextBytes = 4096;   // of a message or a value

  // A log that also keeps the lines with a field "job". The object lives as long as the log.
  static Log Tee(const std::shared_ptr<JobLines>& lines, Log inner);

  void Add(const LogLine& line);
  std::vector<v1::LogRecord> Take();
  // The call that should have taken them failed: they come before what was said since.
  void PutBack(std::vector<v1::LogRecord> records);

 private:
  void DropOldest();

  std::mutex mutex_;
  std::deque<v1::LogRecord> records_;  // guarded by mutex_, like the next one
  size_t bytes_ = 0;
};

}  // namespace fusion

#endif  // FUSION_WORKER_LEASE_JOB_LINES_H_
