// Summarises raw samples: drops the samples that were taken while the machine was disturbed, and computes order
// statistics of the rest.
#ifndef FUSION_WORKER_MEASURE_SUMMARY_H_
#define FUSION_WORKER_MEASURE_SUMMARY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

struct Sample {
  double latency_ns = 0;
  double peak_flops_per_s = 0;  // of the FMA loop that ran beside the sample
};

struct MeasureSummary {
  std::vector<double> samples_ns;  // the samples that were kept, in the order they were taken
  double min_ns = 0, median_ns = 0, p90_ns = 0;
  double peak_ratio = 0;        // median peak of the kept samples over the best peak; 1: an undisturbed machine
  std::vector<double> outputs;  // numbers that the kernel computed, where they were asked for; NaN: one is not finite
};

// Drops samples whose peak is below 0.85 of the best, unless fewer than a third would remain. `samples` must not be
// empty.
MeasureSummary Summarize(const std::vector<Sample>& samples);

// Returns true if more samples would not change the median: there are at least `least` of them, and their median
// absolute deviation is below 1% of the median.
bool Settled(const std::vector<Sample>& samples, size_t least);

// A JSON array with an object for each bundle: the measuring process prints it, and the worker reads it.
std::string SummariesToJson(const std::vector<MeasureSummary>& summaries);
absl::StatusOr<std::vector<MeasureSummary>> SummariesFromJson(const std::string& text);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_SUMMARY_H_
