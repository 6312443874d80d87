#include "client/cli/progress.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/words.h"
#include "runtime/base/steady_clock.h"

namespace fusion {
namespace {

constexpr int kLabelColumns = 10;
constexpr int kTextColumns = 46;
constexpr int kBarColumns = 15;

std::string Padded(const std::string& text, int columns) {
  const auto used = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return text + std::string(static_cast<size_t>(std::max<int64_t>(0, columns - used)), ' ');
}

std::string Bar(int64_t done, int64_t total) {
  const int64_t full = std::clamp<int64_t>(done * kBarColumns / std::max<int64_t>(1, total), 0, kBarColumns);
  std::string bar = "[";
  for (int64_t i = 0; i < kBarColumns; ++i) bar += i < full ? "█" : "░";
  return bar + "]";
}

std::string Eta(absl::Duration elapsed, int64_t done, int64_t total) {
  if (done <= 0 || done >= total || elapsed < absl::Seconds(1)) return "";
  const int64_t seconds = absl::ToInt64Seconds(elapsed * static_cast<double>(total - done) / static_cast<double>(done));
  return absl::StrFormat(" · eta %d:%02d", seconds / 60, seconds % 60);
}

}  // namespace

Progress::Progress(const std::string& mode) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  mode_ = mode == "none" ? Mode::kNone : mode == "tty" || (mode != "plain" && terminal) ? Mode::kTty : Mode::kPlain;
  const char* no_color = getenv("NO_COLOR");
  color_ = mode_ == Mode::kTty && terminal && (no_color == nullptr || *no_color == 0);
}

Progress::~Progress() { ClearLive(); }

void Progress::ClearLive() {
  if (live_) std::fprintf(stderr, "\r\033[K");
  live_ = false;
}

void Progress::Plain(const std::string& padded) {
  const std::string text(absl::StripTrailingAsciiWhitespace(padded));
  if (text == plain_last_) return;
  plain_last_ = text;
  std::fprintf(stderr, "%s %s\n", absl::FormatTime("%H:%M:%S", absl::Now(), absl::LocalTimeZone()).c_str(),
               text.c_str());
}

void Progress::Headline(const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (mode_ == Mode::kNone) return;
  ClearLive();
  std::fprintf(stderr, "%s\n", Printable(text).c_str());
}

void Progress::Line(const std::string& label, const std::string& text, double seconds) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (mode_ == Mode::kNone) return;
  const std::string shown = Printable(text);
  const std::string time = seconds < 0 ? "" : SecondsInWords(seconds);
  if (mode_ == Mode::kPlain) {
    Plain(
        absl::StrCat(Padded(label, kLabelColumns), " ", time.empty() ? shown : Padded(shown, kTextColumns), " ", time));
    return;
  }
  ClearLive();
  std::fprintf(stderr, "  %s%s%s %s", color_ ? "\033[1m" : "", Padded(label, kLabelColumns).c_str(),
               color_ ? "\033[0m" : "", time.empty() ? shown.c_str() : Padded(shown, kTextColumns).c_str());
  std::fprintf(stderr, time.empty() ? "\n" : " %s\n", time.c_str());
}

void Progress::Now(const std::string& label, const std::string& text, int64_t done, int64_t total) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (mode_ == Mode::kNone) return;
  if (bar_label_ != label) {
    bar_label_ = label;
    bar_start_ = SteadyNow();
  }
  std::string shown = Printable(text);
  if (total > 0) shown = absl::StrCat(done, "/", total, shown.empty() ? "" : " ", shown);
  if (mode_ == Mode::kPlain) {
    const absl::Time now = SteadyNow();
    // A message that changes while nothing is done, such as one about a missing worker, is no count.
    const bool counting = label == plain_label_ && total > 0 && done < total && (done != plain_done_ || text.empty());
    if (counting && now - plain_time_ < absl::Seconds(2)) return;
    plain_label_ = label;
    plain_done_ = done;
    plain_time_ = now;
    Plain(absl::StrCat(Padded(label, kLabelColumns), " ", shown));
    return;
  }
  ClearLive();
  if (total > 0) shown = absl::StrCat(Bar(done, total), " ", shown, Eta(SteadyNow() - bar_start_, done, total));
  std::fprintf(stderr, "  %s %s", Padded(label, kLabelColumns).c_str(), shown.c_str());
  std::fflush(stderr);
  live_ = true;
}

}  // namespace fusion
