// Page tokens: where a list goes on, as text that callers hand back and do not read. A token names the last row that
// was returned, so that rows which come meanwhile neither repeat nor hide others.
#ifndef FUSION_SERVER_LIST_PAGES_H_
#define FUSION_SERVER_LIST_PAGES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "db/stores/store.h"

namespace fusion {

// The most rows of a page: `asked`, or `otherwise` for 0, and never more than `most`.
int PageLimit(int asked, int otherwise, int most);

// All fail with INVALID_ARGUMENT for a token that no page had. "" is the first page.
std::string PageTokenOf(const JobCursor& cursor);
absl::StatusOr<JobCursor> JobCursorOf(const std::string& token);
// The place in a list that is ordered by a number and then by a name.
struct ListCursor {
  int64_t number = INT64_MIN;
  std::string name = {};
};
std::string PageTokenOf(const ListCursor& cursor);
absl::StatusOr<ListCursor> ListCursorOf(const std::string& token);

}  // namespace fusion

#endif  // FUSION_SERVER_LIST_PAGES_H_
