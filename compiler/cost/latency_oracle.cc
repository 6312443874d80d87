#include "compiler/cost/latency_oracle.h"

namespace fusion {

const char* LatencySourceName(LatencySource source) {
  switch (source) {
    case LatencySource::kDatabase:
      return "database";
    case LatencySource::kMeasured:
      return "measured";
    case LatencySource::kModel:
      return "model";
    case LatencySource::kFailed:
      return "failed";
  }
  return "?";
}

absl::StatusOr<std::vector<LatencyAnswer>> ModelOracle::Latency(absl::Span<const LatencyQuestion> questions,
                                                                MeasurementBundler&) {
  std::vector<LatencyAnswer> answers;
  for (const LatencyQuestion& question : questions)
    answers.push_back({question.model_latency_ns, LatencySource::kModel});
  return answers;
}

}  // namespace fusion
