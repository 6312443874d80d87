#include "worker/measure/summary.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"

namespace fusion {

MeasureSummary Summarize(const std::vector<Sample>& samples) {
  double best = 0;
  for (const Sample& sample : samples) best = std::max(best, sample.peak_flops_per_s);
  std::vector<double> latencies, peaks;
  for (const Sample& sample : samples) {
    if (sample.peak_flops_per_s < 0.85 * best) continue;
    latencies.push_back(sample.latency_ns);
    peaks.push_back(sample.peak_flops_per_s);
  }
  if (latencies.size() * 3 < samples.size()) {
    latencies.clear();
    peaks.clear();
    for (const Sample& sample : samples) {
      latencies.push_back(sample.latency_ns);
      peaks.push_back(sample.peak_flops_per_s);
    }
  }
  MeasureSummary summary;
  summary.min_ns = Quantile(latencies, 0);
  summary.median_ns = Quantile(latencies, 0.5);
  summary.p90_ns = Quantile(latencies, 0.9);
  summary.peak_ratio = best > 0 ? Quantile(peaks, 0.5) / best : 0;
  summary.samples_ns = std::move(latencies);
  return summary;
}

bool Settled(const std::vector<Sample>& samples, size_t least) {
  if (samples.size() < least) return false;
  const MeasureSummary summary = Summarize(samples);
  std::vector<double> deviations;
  for (double sample : summary.samples_ns) deviations.push_back(std::abs(sample - summary.median_ns));
  return summary.samples_ns.size() >= least && Quantile(deviations, 0.5) < 0.01 * summary.median_ns;
}

std::string SummariesToJson(const std::vector<MeasureSummary>& summaries) {
  nlohmann::json all = nlohmann::json::array();
  for (const MeasureSummary& summary : summaries) {
    all.push_back({{"samples_ns", summary.samples_ns},
                   {"min_ns", summary.min_ns},
                   {"median_ns", summary.median_ns},
                   {"p90_ns", summary.p90_ns},
                   {"peak_ratio", summary.peak_ratio}});
    if (!summary.outputs.empty()) all.back()["outputs"] = summary.outputs;  // NaN becomes null
  }
  return all.dump();
}

namespace {

absl::StatusOr<MeasureSummary> SummaryFromJson(const nlohmann::json& json) {
  MeasureSummary summary;
  if (!json.is_object() || !json.contains("samples_ns") || !json["samples_ns"].is_array()) {
    return absl::InvalidArgumentError("the measuring process printed no summary");
  }
  for (const auto& sample : json["samples_ns"]) {
    if (!sample.is_number())
      return absl::InvalidArgumentError("the measuring process printed a sample that is no number");
    summary.samples_ns.push_back(sample.get<double>());
  }
  for (auto [name, value] : {std::pair<const char*, double*>{"min_ns", &summary.min_ns},
                             {"median_ns", &summary.median_ns},
                             {"p90_ns", &summary.p90_ns},
                             {"peak_ratio", &summary.peak_ratio}}) {
    auto found = json.find(name);
    if (found == json.end() || !found->is_number()) {
      return absl::InvalidArgumentError(std::string("the measuring process printed no ") + name);
    }
    *value = found->get<double>();
  }
  if (const auto outputs = json.find("outputs"); outputs != json.end() && outputs->is_array()) {
    for (const auto& output : *outputs) {
      summary.outputs.push_back(output.is_number() ? output.get<double>() : std::numeric_limits<double>::quiet_NaN());
    }
  }
  if (summary.samples_ns.empty() || !(summary.median_ns > 0)) {
    return absl::InvalidArgumentError("the measuring process took no sample");
  }
  return summary;
}

}  // namespace

absl::StatusOr<std::vector<MeasureSummary>> SummariesFromJson(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) return absl::InvalidArgumentError("the measuring process printed no summaries");
  std::vector<MeasureSummary> summaries;
  for (const nlohmann::json& one : json) {
    ASSIGN_OR_RETURN(MeasureSummary summary, SummaryFromJson(one));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace fusion
