#include "client/cli/words.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/exit_codes.h"

namespace fusion {
namespace {

// Counts code points, which is close enough to columns for the texts printed here.
size_t Columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string BytesInWords(int64_t bytes) {
  const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 4) value /= 1024, ++unit;
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.1f %s", value, units[unit]);
}

std::string SecondsInWords(double seconds) {
  if (seconds < 60) return absl::StrFormat("%.1fs", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%dm%02ds", whole / 60, whole % 60);
  return absl::StrFormat("%dh%02dm", whole / 3600, whole % 3600 / 60);
}

std::string TimeInWords(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixMillis(unix_ms), absl::LocalTimeZone());
}

std::string LatencyInWords(double ns) {
  if (ns < 1e3) return absl::StrFormat("%.0f ns", ns);
  if (ns < 1e6) return absl::StrFormat("%.1f µs", ns * 1e-3);
  if (ns < 1e9) return absl::StrFormat("%.2f ms", ns * 1e-6);
  return absl::StrFormat("%.2f s", ns * 1e-9);
}

std::string CountInWords(int64_t count) {
  const std::string digits = absl::StrCat(count);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const bool after_digit = i > 0 && digits[i - 1] != '-';
    if (after_digit && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

std::string ShortDigest(const std::string& digest) {
  return digest.size() < 8 ? digest : absl::StrCat(digest.substr(0, 4), "…", digest.substr(digest.size() - 2));
}

std::string Plural(int64_t count, const std::string& noun) {
  return absl::StrCat(CountInWords(count), " ", noun, count == 1 ? "" : "s");
}

absl::StatusOr<absl::Duration> ParseAge(absl::string_view option, const std::string& text) {
  int64_t count = 0;
  const absl::string_view number = absl::string_view(text).substr(0, text.empty() ? 0 : text.size() - 1);
  if (absl::SimpleAtoi(number, &count) && count >= 0 && count <= 100000) {
    switch (text.back()) {
      case 'd':
        return count * absl::Hours(24);
      case 'h':
        return absl::Hours(count);
      case 'm':
        return absl::Minutes(count);
      case 's':
        return absl::Seconds(count);
    }
  }
  return UsageError(absl::StrCat(option, " is '", text, "'; say 90d, 12h, 30m or 45s"));
}

absl::StatusOr<absl::Time> ParseMoment(absl::string_view option, const std::string& text, absl::Time now,
                                       absl::TimeZone zone) {
  absl::Time moment;
  std::string ignored;
  for (const char* format : {absl::RFC3339_full, "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S"}) {
    if (absl::ParseTime(format, text, zone, &moment, &ignored)) return moment;
  }
  const absl::CivilDay today = absl::ToCivilDay(now, zone);
  for (const absl::CivilDay day : {today, today + 1}) {
    const std::string whole = absl::StrCat(absl::FormatCivilTime(day), " ", text);
    if (absl::ParseTime("%Y-%m-%d %H:%M", whole, zone, &moment, &ignored) && moment > now) return moment;
  }
  return UsageError(absl::StrCat(option, " is '", text, "'; say '2026-12-24 22:00', 22:00 or 2026-12-24T22:00:00Z"));
}

std::string Printable(const std::string& text) {
  std::string safe = text;
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return safe;
}

std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::vector<std::string>> all;
  if (!header.empty()) all.push_back(header);
  all.insert(all.end(), rows.begin(), rows.end());
  std::vector<size_t> widths;
  for (const auto& row : all) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], Columns(row[c]));
  }
  std::string text;
  for (const auto& row : all) {
    for (size_t c = 0; c < row.size(); ++c) {
      text += Printable(row[c]);
      if (c + 1 < row.size()) text.append(widths[c] - Columns(row[c]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace fusion
