// Progress: a long command reports on stderr what it is doing. On a terminal it redraws the current line in place; in
// plain mode each change is a line with a time stamp; with mode none it prints nothing.
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
  // Prints a line that stays: "  label      text       0.4s". Negative seconds are not shown.
  void Line(const std::string& label, const std::string& text, double seconds = -1);
  // Shows the current activity in a line that the next call of any function replaces. `total` 0: no bar.
  void Now(const std::string& label, const std::string& text, int64_t done = 0, int64_t total = 0);

 private:
  void ClearLive();
  void Plain(const std::string& padded);

  enum class Mode { kTty, kPlain, kNone } mode_;
  bool color_ = false;
  std::mutex mutex_;
  bool live_ = false;  // guarded by mutex_, like the next two lines
  std::string plain_last_, plain_label_;
  int64_t plain_done_ = 0;
  absl::Time plain_time_;
  std::string bar_label_;
  absl::Time bar_start_;
};

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_PROGRESS_H_
