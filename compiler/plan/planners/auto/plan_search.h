// Improves a plan as a whole: each change is kept only if the estimate of the whole plan (FusionOracle::EstimatePlan)
// falls.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_AUTO_PLAN_SEARCH_H_
#define FUSION_COMPILER_PLAN_PLANNERS_AUTO_PLAN_SEARCH_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/plan.h"

namespace fusion {

// Bounds on a search. They are counts, not times, so that a search ends at the same plan on every machine.
struct SearchLimits {
  int64_t plans = 300;       // whole plans that are estimated
  int64_t kernels = 50'000;  // in these plans, together
  int64_t fits = 600;        // fusion blocks that the oracle is asked about
  size_t operators = 64;     // of a fusion block that the search makes
  size_t region = 24;        // operators among whose fusion blocks an exact choice is made
};

// A fusion block that the oracle has accepted, without hand-overs of which something is asked.
struct KnownFusionBlock {
  std::vector<ecg::NodeId> nodes;
  double estimate_ns = 0;
};

class PlanSearch {
 public:
  // All must outlive the search. `known`: fusion blocks that planners have asked about, among which exact choices are
  // made.
  PlanSearch(const ecg::Graph& graph, FusionOracle& oracle, const PlanOptions& options, const SearchLimits& limits,
             std::vector<KnownFusionBlock> known);

  // Begins with this plan.
  absl::Status Start(const FusionPlan& plan);

  // Where other plans divide the same operators otherwise, takes their fusion blocks as far as that helps; and of all
  // fusion blocks that the plans have there, the exact choice.
  absl::Status Combine(const std::vector<const FusionPlan*>& others);
  // Merges neighbours, with a barrier between them where they fit in no other way; makes the exact choice among all
  // known fusion blocks of two neighbours; and splits fusion blocks. Repeats that until nothing helps or a limit is
  // reached.
  absl::Status Move();

  // The plan as it is now. Each decision that differs from those of the plan at the start says by how much.
  FusionPlan Plan() const;
  const PlanEstimate& estimate() const { return estimate_; }
  int64_t changes() const { return changes_; }  // that were kept
  int64_t plans_estimated() const { return plans_; }

 private:
  using FusionBlocks = std::vector<FusionBlock>;
  // Replaces the fusion blocks number `gone`, ascending, by others that own the same nodes, if the whole plan's
  // estimate falls. Returns whether it did. `how` is for people: "merged".
  absl::StatusOr<bool> Try(const std::vector<size_t>& gone, const FusionBlocks& made, const std::string& how);
  absl::StatusOr<bool> TryMerge(size_t a, size_t b);
  absl::StatusOr<bool> TryChoice(size_t a, size_t b);
  absl::StatusOr<bool> TrySplits(size_t b);
  absl::StatusOr<bool> CombineComponent(const std::vector<ecg::NodeId>& nodes,
                                        const std::vector<const FusionPlan*>& others);
  // The least cost of fusion blocks that hold these nodes, by their own estimates; empty where no choice is possible.
  FusionBlocks Choose(const std::vector<ecg::NodeId>& nodes, const std::vector<KnownFusionBlock>& candidates) const;
  // The estimate of a fusion block alone; negative where the oracle refuses it.
  double Estimate(const FusionBlock& fusion_block);
  std::vector<std::pair<size_t, size_t>> Neighbours() const;  // producer and consumer, of the current fusion blocks
  std::vector<int> Owners(const FusionBlocks& fusion_blocks) const;  // by node
  absl::Status CheckCancelled() const;
  bool Spent() const { return plans_ >= limits_.plans || kernels_ >= limits_.kernels || fits_ >= limits_.fits; }

  const ecg::Graph& graph_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  const SearchLimits limits_;
  std::map<ecg::NodeId, std::vector<KnownFusionBlock>> known_;  // by their first node
  FusionPlan start_;
  FusionBlocks fusion_blocks_;
  PlanEstimate estimate_;
  std::map<std::pair<ecg::NodeId, ecg::NodeId>, std::string> reasons_;  // of edges that were decided anew
  std::map<FusionBlock, double> estimates_;                             // of fusion blocks, as Estimate returned them
  // Changes that were tried in vain: the estimates of the fusion blocks before and after. Models repeat themselves, and
  // a change that did not help in one layer does not help in the next.
  std::set<std::vector<double>> vain_;
  int64_t plans_ = 0, kernels_ = 0, fits_ = 0, changes_ = 0;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_AUTO_PLAN_SEARCH_H_
