// Prints numbers and digests for people, and tables of them.
#ifndef FUSION_CLIENT_CLI_WORDS_H_
#define FUSION_CLIENT_CLI_WORDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace fusion {

std::string BytesInWords(int64_t bytes);                     // "97.8 MiB"
std::string SecondsInWords(double seconds);                  // "0.4s", "1m52s"
std::string TimeInWords(int64_t unix_ms);                    // "2024-05-01 12:00:00" local time, "-" for 0
std::string LatencyInWords(double ns);                       // "1.92 ms", "31.4 µs"
std::string CountInWords(int64_t count);                     // "1,840"
std::string ShortDigest(const std::string& digest);          // "3f9a…c2"
std::string Plural(int64_t count, const std::string& noun);  // "1 worker", "2 workers"

// Reads "90d", "12h", "30m" or "45s". Fails as a usage error that names the option.
absl::StatusOr<absl::Duration> ParseAge(absl::string_view option, const std::string& text);

// Reads a moment of local time: "2026-12-24 22:00", or "22:00", which is the next one after `now`; or RFC 3339 with a
// zone. Fails as a usage error that names the option.
absl::StatusOr<absl::Time> ParseMoment(absl::string_view option, const std::string& text, absl::Time now,
                                       absl::TimeZone zone);

// Replaces control characters (a model's name may hold any) by '?', so that no text from a file can control a terminal.
std::string Printable(const std::string& text);

// Pads columns to their widest cell; `header` may be empty. Every line ends with a newline.
std::string Table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_WORDS_H_
