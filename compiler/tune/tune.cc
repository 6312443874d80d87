#include "compiler/tune/tune.h"

namespace fusion::tune {

int PickVariant(absl::Span<const LatencyAnswer> answers) {
  int best = 0;
  for (int v = 1; v < static_cast<int>(answers.size()); ++v) {
    if (answers[v].source == LatencySource::kModel || answers[0].source == LatencySource::kModel) continue;
    const double limit = best == 0 ? (1 - kMargin) * answers[0].latency_ns : answers[best].latency_ns;
    if (answers[v].latency_ns < limit) best = v;
  }
  return best;
}

bool WorthTuning(double latency_ns, double total_ns) { return latency_ns > kWorthwhileShare * total_ns; }

}  // namespace fusion::tune
