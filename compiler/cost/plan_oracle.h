// PlanOracle: which of several plans of a model is the fastest, when the model runs as a whole? The plans are run in
// turns and warm, unlike the kernels of a LatencyOracle, which are run alone and cold. The answer comes from the profile
// database, else from a worker.
#ifndef FUSION_COMPILER_COST_PLAN_ORACLE_H_
#define FUSION_COMPILER_COST_PLAN_ORACLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace fusion {

struct PlanQuestion {
  std::string key;          // compiler/bundle/plan_key.h
  std::string description;  // for people: "plan by estimates, 24 kernels"
  double typical_ns = 0;    // the cost model's sum over the launches at typical rates; stored with a measurement
};

// A plan beside the reference, as they ran in turns.
struct PlanComparison {
  double ratio = 0;                      // its latency over the reference's: the median of the rounds
  double ratio_low = 0, ratio_high = 0;  // the median's 95% confidence interval
  double median_ns = 0, reference_ns = 0;
  int64_t rounds = 0;
};

struct PlanAnswers {
  std::vector<std::optional<PlanComparison>> comparisons;  // parallel to the plans
  std::string not_measured;                                // for people: why one is missing
};

// Makes what a worker runs: a bundle with a program for each plan. It is called only for plans that the database does
// not know.
class PlanBundler {
 public:
  virtual ~PlanBundler() = default;
  // Writes a bundle with the reference as its first program and then these plans, by their positions in the question.
  virtual absl::Status WriteBundle(absl::Span<const size_t> plans, const std::string& path) = 0;
};

class PlanOracle {
 public:
  virtual ~PlanOracle() = default;
  // Compares each plan with the reference. All of them are plans of one model for the same inputs, and their keys
  // differ. Blocks until all are answered. Fails with CANCELLED, or with UNAVAILABLE at a shutdown; that nobody can
  // measure is no failure.
  virtual absl::StatusOr<PlanAnswers> Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                              PlanBundler& bundler) = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_COST_PLAN_ORACLE_H_
