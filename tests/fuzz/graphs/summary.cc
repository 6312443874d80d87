#include "tests/fuzz/graphs/summary.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace fusion::fuzz {
namespace {

constexpr double kCompared = 0.75;  // of all elements, at least
constexpr double kRefused = 0.02;   // of all random graphs, at most
constexpr double kNoTarget = 0.34;  // of all random graphs: at most so many may be beyond the only target that is tried

// Lists the most frequent first.
std::string Counts(const char* title, const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> sorted;
  for (const auto& [reason, count] : counts) sorted.emplace_back(-count, reason);
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [count, reason] : sorted) absl::StrAppend(&text, "  ", title, " ", -count, " times: ", reason, "\n");
  return text;
}

}  // namespace

std::string Reason(const std::string& message) {
  std::string reason;
  char quote = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    const bool word = i > 0 && std::isalnum(static_cast<unsigned char>(message[i - 1])) != 0;
    if (quote != 0) {
      if (c != quote) continue;
      quote = 0;
      reason += "'#'";
    } else if ((c == '\'' && !word) || c == '"') {
      quote = c;
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0 && !word) {
      while (i + 1 < message.size() && (std::isdigit(static_cast<unsigned char>(message[i + 1])) != 0)) ++i;
      reason += '#';
    } else {
      reason += c;
    }
  }
  // Shortens lists, whose lengths differ from graph to graph.
  for (const char* list : {"#, #", "-#"}) {
    for (size_t at = reason.find(list); at != std::string::npos; at = reason.find(list)) {
      reason.replace(at, std::string(list).size(), "#");
    }
  }
  return reason;
}

void Summary::Passed(const Coverage& coverage) {
  ++(coverage.uncertain == 0 ? compared_ : coverage.compared() > 0 ? partly_ : not_compared_);
  elements_ += coverage;
}

void Summary::Refused(const absl::Status& why) { ++refused_[Reason(std::string(why.message()))]; }

void Summary::LeftOut(const std::map<std::string, int>& reasons) {
  for (const auto& [reason, count] : reasons) left_out_[reason] += count;
}

void Summary::OneKernel(const std::map<std::string, int>& made, const std::map<std::string, int>& not_made) {
  for (const auto& [mode, times] : made) one_kernel_[mode] += times;
  for (const auto& [reason, times] : not_made) not_one_kernel_[reason] += times;
}

void Summary::RefusedByTarget(const std::map<std::string, int>& reasons, bool judged) {
  for (const auto& [reason, times] : reasons) refused_by_target_[reason] += times;
  if (!reasons.empty() && !judged) ++on_no_target_;
}

int64_t Summary::RefusedGraphs() const {
  int64_t count = 0;
  for (const auto& [reason, times] : refused_) count += times;
  return count;
}

std::string Summary::Text() const {
  const std::string no_target = on_no_target_ > 0 ? absl::StrCat(on_no_target_, " refused by the target, ") : "";
  return absl::StrCat(graphs(), " graphs: ", compared_, " compared, ", partly_, " partly compared, ", not_compared_,
                      " not compared, ", RefusedGraphs(), " refused, ", no_target, failed_, " failed\n",
                      "elements: ", elements_.exact, " equal, ", elements_.rounded, " within rounding, ",
                      elements_.loose, " within rounding larger than they are, ", elements_.special,
                      " NaN or infinite alike; ", elements_.uncertain, " not compared, as rounding decides\n",
                      Counts("refused", refused_), Counts("left out", left_out_), Counts("one kernel", one_kernel_),
                      Counts("not one kernel", not_one_kernel_), Counts("refused by target", refused_by_target_));
}

std::string Summary::Shortcoming() const {
  const int64_t refused = RefusedGraphs();
  if (static_cast<double>(refused + not_compared_) > std::max(1.0, kRefused * static_cast<double>(graphs()))) {
    return absl::StrFormat("%d of %d graphs were refused or not compared, at most %g%% may be", refused + not_compared_,
                           graphs(), 100 * kRefused);
  }
  if (static_cast<double>(on_no_target_) > std::max(1.0, kNoTarget * static_cast<double>(graphs()))) {
    return absl::StrFormat("%d of %d graphs were refused by the target, at most %g%% may be", on_no_target_, graphs(),
                           100 * kNoTarget);
  }
  int64_t one_kernel = 0, not_one_kernel = 0;
  for (const auto& [mode, times] : one_kernel_) one_kernel += times;
  for (const auto& [reason, times] : not_one_kernel_) not_one_kernel += times;
  if (not_one_kernel > std::max<int64_t>(1, one_kernel)) {
    return absl::StrFormat("%d of %d chains of windows are no kernel of a form, at most half may be", not_one_kernel,
                           one_kernel + not_one_kernel);
  }
  const auto compared = static_cast<double>(elements_.compared());
  const double all = compared + static_cast<double>(elements_.uncertain);
  if (all > 0 && compared / all < kCompared) {
    return absl::StrFormat("only %.1f%% of all elements were compared", 100 * compared / all);
  }
  return "";
}

}  // namespace fusion::fuzz
