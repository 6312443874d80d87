#include "server/list_pages.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

absl::Status Unknown() { return absl::InvalidArgumentError("page_token: not one that an answer of this call had"); }

// The parts of a token that begins with this letter, or an error. The last part may hold the separator.
absl::StatusOr<std::vector<std::string>> PartsOf(const std::string& token, char kind, int parts) {
  constexpr size_t kMost = 1024;
  std::string text;
  if (token.size() > kMost || !absl::WebSafeBase64Unescape(token, &text)) return Unknown();
  std::vector<std::string> found = absl::StrSplit(text, absl::MaxSplits('/', parts));
  if (found.size() != static_cast<size_t>(parts) + 1 || found[0] != std::string(1, kind)) return Unknown();
  found.erase(found.begin());
  return found;
}

}  // namespace

int PageLimit(int asked, int otherwise, int most) { return asked <= 0 ? otherwise : std::min(asked, most); }

std::string PageTokenOf(const JobCursor& cursor) {
  return absl::WebSafeBase64Escape(
      absl::StrCat("j/", cursor.before_number, "/", cursor.joined_ms, "/", cursor.joined_id));
}

absl::StatusOr<JobCursor> JobCursorOf(const std::string& token) {
  JobCursor cursor;
  if (token.empty()) return cursor;
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, PartsOf(token, 'j', 3));
  if (!absl::SimpleAtoi(parts[0], &cursor.before_number) || !absl::SimpleAtoi(parts[1], &cursor.joined_ms)) {
    return Unknown();
  }
  cursor.joined_id = parts[2];
  return cursor;
}

std::string PageTokenOf(const ListCursor& cursor) {
  return absl::WebSafeBase64Escape(absl::StrCat("l/", cursor.number, "/", cursor.name));
}

absl::StatusOr<ListCursor> ListCursorOf(const std::string& token) {
  ListCursor cursor;
  if (token.empty()) return cursor;
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, PartsOf(token, 'l', 2));
  if (!absl::SimpleAtoi(parts[0], &cursor.number)) return Unknown();
  cursor.name = parts[1];
  return cursor;
}

}  // namespace fusion
