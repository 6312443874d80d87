// KnownAnswers: the answers of another oracle that need no measurement. A plan that is made with them takes the
// schedules that were found before, and costs no worker's time.
#ifndef FUSION_COMPILER_COST_KNOWN_ANSWERS_H_
#define FUSION_COMPILER_COST_KNOWN_ANSWERS_H_

#include <string>
#include <vector>

#include "compiler/cost/latency_oracle.h"

namespace fusion {

class KnownAnswers : public LatencyOracle {
 public:
  // `known` must outlive this.
  explicit KnownAnswers(LatencyOracle* known) : known_(*known) {}

  // Questions that the database cannot answer get the cost model's estimate. The members of a group are answered
  // together or not at all, since a measured latency and an estimate cannot be compared.
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override;
  absl::StatusOr<bool> Knows(const std::string& key) override { return known_.Knows(key); }
  absl::StatusOr<ModelError> Error() override { return known_.Error(); }
  absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& workload) override {
    return known_.Trials(workload);
  }
  // None: what a neighbour's choices are worth for this kernel, only a measurement says.
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure, const std::string& workload,
                                                            int limit) override;

 private:
  LatencyOracle& known_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_KNOWN_ANSWERS_H_
