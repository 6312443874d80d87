// Progress: how a long command tells what it does, on stderr. On a terminal the current line is redrawn in place; in
// plain mode each change is a line with a time stamp; with none, nothing is said.
#ifndef FUSION_CLIENT_CLI_PROGRESS_H_
#define FUSION_CLIENT_CLI_PROGRESS_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/time/time.h"

namespace fusion {

class Progress {
 public:
  // `mode`: auto (tty where stderr is a terminal, else plain), tty, plain, none.
  explicit Progress(const std::string& mode);
  ~Progress();

  void Headline(const std::string& text);
  // A line that stays: "  label      text       0.4s". Negative seconds: none shown.
  void Line(const std::string& label, const std::string& text, double seconds = -1);
  // The line of what happens now; the next call of anything replaces it. `total` 0: no bar.
  void Now(const std::string& label, const std::string& text, int64_t done = 0, int64_t total = 0);

 private:
  void ClearLive();
  void Plain(const std::string& padded);

  enum class Mode { kTty, kPlain, kNone } mode_;
  bool color_ = false;
  std::mutex mutex_;
  bool live_ = false;  // guarded by mutex_, as are the next
  std::string plain_last_, plain_label_;
  absl::Time plain_time_;
  std::string bar_label_;
  absl::Time bar_start_;
};

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_PROGRESS_H_
