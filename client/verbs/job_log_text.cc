#include "client/verbs/job_log_text.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/words.h"

namespace fusion {

std::string JobLogLineInWords(const v1::LogRecord& line) {
  std::string text = absl::StrFormat(
      "%s %-7s %-12s %s", absl::FormatTime("%H:%M:%E3S", absl::FromUnixMillis(line.time_ms()), absl::LocalTimeZone()),
      line.level(), line.source(), line.message());
  const std::map<std::string, std::string> fields(line.fields().begin(), line.fields().end());
  const char* gap = "  ";
  for (const auto& [key, value] : fields) {
    const bool bare = !value.empty() && value.find_first_of(" \"=") == std::string::npos;
    absl::StrAppend(&text, gap, key, "=", bare ? value : absl::StrCat("'", value, "'"));
    gap = " ";
  }
  return Printable(text);
}

}  // namespace fusion
