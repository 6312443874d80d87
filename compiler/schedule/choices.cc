#include "compiler/schedule/choices.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion {

std::string PrintChoices(const Choices& choices) {
  std::string text;
  for (const auto& [name, taken] : choices) {
    if (taken != 0) absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", taken);
  }
  return text;
}

absl::StatusOr<Choices> ParseChoices(absl::string_view text) {
  Choices choices;
  for (absl::string_view item : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(item, absl::MaxSplits('=', 1));
    int taken = 0;
    if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &taken) || taken < 0) {
      return absl::InvalidArgumentError(absl::StrCat("'", item, "' is no choice of a schedule: NAME=NUMBER is"));
    }
    choices[std::string(parts.first)] = taken;
  }
  return choices;
}

int ChoiceLog::Pick(absl::string_view name, int count, ChoiceKind kind) {
  if (count < 2) return 0;
  const int before = asked_[std::string(name)]++;
  ChoicePoint point{before == 0 ? std::string(name) : absl::StrCat(name, ".", before), count, 0, kind};
  const auto wanted = wanted_.find(point.name);
  if (wanted != wanted_.end() && wanted->second < count) point.taken = wanted->second;
  met_.push_back(point);
  return point.taken;
}

}  // namespace fusion
