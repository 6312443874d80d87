#include "client/verbs/alternatives.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/words.h"

namespace fusion {
namespace {

// The latency of a plan over that of another. Both were measured beside the same reference.
struct Ratio {
  double median = 0, low = 0, high = 0;
};
Ratio RatioOf(const v1::PlanAlternative& plan, const v1::PlanAlternative& other) {
  return {plan.ratio() / other.ratio(), plan.ratio_low() / other.ratio_high(), plan.ratio_high() / other.ratio_low()};
}

// More plans than this are counted, and told one by one by AlternativesTable only.
constexpr size_t kMostInWords = 2;

std::string PlanInWords(const v1::PlanAlternative& plan, const std::string& more = "") {
  return absl::StrCat(plan.plan(), " (", Plural(plan.kernels(), "kernel"), more, ")");
}

// How much longer the other plans of the chosen one's program take.
std::string OthersInWords(const v1::Account& account, const v1::PlanAlternative& chosen) {
  std::string words;
  std::vector<const v1::PlanAlternative*> measured, others;
  for (const v1::PlanAlternative& other : account.alternatives()) {
    if (other.chosen() || other.specialisation() != chosen.specialisation()) continue;
    (other.rounds() > 0 && chosen.rounds() > 0 ? measured : others).push_back(&other);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const auto* a, const auto* b) { return a->ratio() < b->ratio(); });
  const size_t shown = measured.size() <= kMostInWords ? measured.size() : 1;
  for (size_t m = 0; m < shown; ++m) {
    const Ratio ratio = RatioOf(*measured[m], chosen);
    absl::StrAppendFormat(&words, "; that %s takes %.3f of its time, %.3f–%.3f with 95%% confidence",
                          PlanInWords(*measured[m]), ratio.median, ratio.low, ratio.high);
  }
  if (shown < measured.size()) {
    absl::StrAppendFormat(&words, "; %d more take %.3f to %.3f of it", measured.size() - shown,
                          RatioOf(*measured[shown], chosen).median, RatioOf(*measured.back(), chosen).median);
  }
  if (others.size() > kMostInWords) return absl::StrCat(words, "; ", others.size(), " were not measured");
  for (const v1::PlanAlternative* other : others) absl::StrAppend(&words, "; that ", PlanInWords(*other));
  return words;
}

}  // namespace

std::vector<std::string> AlternativesInWords(const v1::Account& account) {
  std::vector<std::string> lines;
  for (const v1::PlanAlternative& chosen : account.alternatives()) {
    if (!chosen.chosen()) continue;
    std::string& line = lines.emplace_back();
    if (!chosen.specialisation().empty()) line = absl::StrCat(chosen.specialisation(), ": ");
    // Only ratios of several plans are comparable: they may have been measured at different times.
    const std::string latency = chosen.rounds() > 0 ? absl::StrCat(", ", LatencyInWords(chosen.median_ns())) : "";
    absl::StrAppend(&line, "the plan ", PlanInWords(chosen, latency));
    absl::StrAppend(&line, OthersInWords(account, chosen));
  }
  if (!account.not_compared().empty()) lines.push_back(absl::StrCat("not measured: ", account.not_compared()));
  return lines;
}

std::string AlternativesTable(const v1::Account& account) {
  if (account.alternatives().empty()) return "";
  std::vector<std::string> header{"PLAN", "KERNELS", "ESTIMATED", "MEASURED", "RATIO", "95% CONFIDENCE", ""};
  const bool several = account.specialisations_size() > 0;
  if (several) header.insert(header.begin(), "WITH");
  std::vector<std::vector<std::string>> rows;
  for (const v1::PlanAlternative& plan : account.alternatives()) {
    const bool measured = plan.rounds() > 0;
    rows.push_back({plan.plan(), absl::StrCat(plan.kernels()), LatencyInWords(plan.estimate_ns()),
                    measured ? LatencyInWords(plan.median_ns()) : "-",
                    measured ? absl::StrFormat("%.3f", plan.ratio()) : "-",
                    measured ? absl::StrFormat("%.3f–%.3f", plan.ratio_low(), plan.ratio_high()) : "-",
                    plan.chosen() ? "chosen" : ""});
    if (several) rows.back().insert(rows.back().begin(), plan.specialisation());
  }
  return Table(header, rows);
}

nlohmann::ordered_json AlternativesToJson(const v1::Account& account) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const v1::PlanAlternative& plan : account.alternatives()) {
    list.push_back({{"plan", plan.plan()},
                    {"specialisation", plan.specialisation()},
                    {"kernels", plan.kernels()},
                    {"estimate_ms", plan.estimate_ns() * 1e-6},
                    {"median_ms", plan.median_ns() * 1e-6},
                    {"ratio", plan.ratio()},
                    {"ratio_low", plan.ratio_low()},
                    {"ratio_high", plan.ratio_high()},
                    {"rounds", plan.rounds()},
                    {"chosen", plan.chosen()}});
  }
  return list;
}

}  // namespace fusion
