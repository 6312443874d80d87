// The log of fusiond and fusion-worker: lines for operators and for programs that collect them. A line has a level, a
// message, and fields; the field "job" holds the job's id, so that one search finds what the server and all workers did
// for a job. Libraries take a Log and never ask for the program's own.
#ifndef FUSION_RUNTIME_LOG_LOG_H_
#define FUSION_RUNTIME_LOG_LOG_H_

#include <functional>
#include <iosfwd>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct LogField {
  std::string key;  // lower_snake; not time, level, program or message
  std::string value;
};

struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string message;
  std::vector<LogField> fields;
};

using Log = std::function<void(const LogLine&)>;  // thread-safe, never empty

// Drops every line.
Log NoLog();

struct LogOptions {
  std::string program;          // "fusiond"
  std::string format = "text";  // one of LogFormats()
  std::string level = "info";   // one of LogLevels(); lines of lower levels are dropped
};
const std::vector<std::string>& LogFormats();  // "text", "json"
const std::vector<std::string>& LogLevels();   // "debug", "info", "warning", "error"

// Writes each line at once to `stream` (null: stderr), which must outlive the log. Fails with INVALID_ARGUMENT for an
// unknown format or level. A line holds no line break and no control character, whatever its message and values hold:
//   text  2026-11-21T08:18:47.058Z info fusiond: job succeeded job=j-7Q2M seconds=1.92
//   json  {"time":"2026-11-21T08:18:47.058Z","level":"info","program":"fusiond","message":"job succeeded",…}
absl::StatusOr<Log> MakeLog(const LogOptions& options, std::ostream* stream = nullptr);

}  // namespace fusion

#endif  // FUSION_RUNTIME_LOG_LOG_H_
