#include "compiler/schedule/choices.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
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

int ChoiceLog::Directed(absl::string_view name, const Alternatives& alternatives) {
  int directed = -1;
  for (size_t d = 0; d < directives_.size(); ++d) {
    const DirectiveRequest& one = directives_[d];
    if (one.choice != name) continue;
    if (one.origin >= 0 && std::find(origins_.begin(), origins_.end(), one.origin) == origins_.end()) continue;
    const auto found = std::find(alternatives.begin(), alternatives.end(), one.alternative);
    if (found == alternatives.end()) {
      lacking_[d] = alternatives;
      continue;
    }
    ++met_directives_[d];
    directed = static_cast<int>(found - alternatives.begin());
  }
  return directed;
}

int ChoiceLog::Pick(absl::string_view name, const Alternatives& alternatives, ChoiceKind kind) {
  const int directed = directives_.empty() ? -1 : Directed(name, alternatives);
  const int count = static_cast<int>(alternatives.size());
  if (count < 2) return 0;
  const int before = asked_[std::string(name)]++;
  if (directed >= 0) return directed;
  ChoicePoint point{before == 0 ? std::string(name) : absl::StrCat(name, ".", before), count, 0, kind, alternatives,
                    origins_};
  const auto wanted = wanted_.find(point.name);
  if (wanted != wanted_.end() && wanted->second < count) point.taken = wanted->second;
  met_.push_back(point);
  return point.taken;
}

int ChoiceLog::Pick(absl::string_view name, int count, ChoiceKind kind) {
  Alternatives labels;
  for (int i = 0; i < count; ++i) labels.push_back(NumberLabel(i));
  return Pick(name, labels, kind);
}

absl::Status ChoiceLog::CheckDirectives(bool of_kernel) const {
  for (size_t d = 0; d < directives_.size(); ++d) {
    const std::string& choice = directives_[d].choice;
    if (met_directives_[d] == 1 || of_kernel != (choice == "form" || choice == "library")) continue;
    const auto lacking = lacking_.find(d);
    const std::string why = met_directives_[d] > 1 ? absl::StrCat("it comes up ", met_directives_[d], " times")
                            : lacking == lacking_.end()
                                ? "the schedule has no such choice there"
                                : absl::StrCat("the alternatives are ", absl::StrJoin(lacking->second, ", "));
    return absl::FailedPreconditionError(absl::StrCat("the plan wants ", InWords(directives_[d]), ", and ", why));
  }
  return absl::OkStatus();
}

std::string InWords(const DirectiveRequest& directive) {
  return absl::StrCat("'", directive.choice, "'", directive.stage.empty() ? "" : absl::StrCat(" of ", directive.stage),
                      " to be '", directive.alternative, "'");
}

}  // namespace fusion
