// FarmPlans: the compiler's PlanOracle on top of the farm. It answers from the database, else from a worker that runs
// the plans in turns (worker.proto's PlanRun). A measurement becomes a row before its task is done, and the
// answer is read from the rows, so that one database always gives one answer.
#ifndef FUSION_SERVER_SCHEDULER_FARM_PLANS_H_
#define FUSION_SERVER_SCHEDULER_FARM_PLANS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/plan_oracle.h"
#include "server/scheduler/farm_tasks.h"

namespace fusion {

class FarmPlans : public PlanOracle {
 public:
  // `folder` is an existing one on any file system. The bundle of plans lies there while a worker runs it; for a large
  // model it takes as many bytes as the model's weights, once for each way in which plans pack them.
  FarmPlans(const FarmJob& job, std::string folder) : job_(job), folder_(std::move(folder)) {}
  absl::StatusOr<PlanAnswers> Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                      PlanBundler& bundler) override;

 private:
  // Has a worker measure these plans. Returns why they were not measured; "" where they were.
  absl::StatusOr<std::string> Measure(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                      absl::Span<const size_t> open, PlanBundler& bundler);

  // Compares imported rows, by plan, with what was measured here, which takes their places in `known`.
  absl::Status CompareImports(const std::string& reference, const std::vector<std::string>& keys,
                              const std::map<size_t, PlanComparisonRow>& imported,
                              std::vector<std::optional<PlanComparisonRow>>* known);

  const FarmJob& job_;
  const std::string folder_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_PLANS_H_
