// From raw samples to what is reported: samples taken while the machine was disturbed are set aside, the rest ordered.
#ifndef FUSION_WORKER_MEASURE_SUMMARY_H_
#define FUSION_WORKER_MEASURE_SUMMARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

struct Sample {
  double latency_ns = 0;
  double peak_flops_per_s = 0;  // of the FMA loop that ran beside it
};

struct MeasureSummary {
  std::vector<double> samples_ns;  // kept ones, in the order they were taken
  double min_ns = 0, median_ns = 0, p90_ns = 0;
  double peak_ratio = 0;  // median peak of the kept samples over the best peak: 1 = an undisturbed machine
};

// Drops samples whose peak is below 0.85 of the best, unless fewer than a third would remain. `samples` is not empty.
MeasureSummary Summarize(const std::vector<Sample>& samples);

// True when more samples would not change the median: at least `least` of them and a median absolute deviation below
// 1% of the median.
bool Settled(const std::vector<Sample>& samples, size_t least);

// A JSON array, an object for each bundle: what the measuring process prints and the worker reads.
std::string SummariesToJson(const std::vector<MeasureSummary>& summaries);
absl::StatusOr<std::vector<MeasureSummary>> SummariesFromJson(const std::string& text);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_SUMMARY_H_
