#include "runtime/base/run_check.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace fusion {

absl::Status RunCheckResult(const std::string& message, absl::Span<const int64_t> values) {
  if (values.empty() || values[0] != 0) return absl::OkStatus();
  std::vector<std::pair<std::string, std::string>> numbers;
  for (size_t i = 1; i < values.size(); ++i) {
    numbers.emplace_back(absl::StrCat("{", i, "}"), absl::StrCat(values[i]));
  }
  return absl::InvalidArgumentError(absl::StrReplaceAll(message, numbers));
}

}  // namespace fusion
