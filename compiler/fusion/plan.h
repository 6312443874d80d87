// FusionPlan: the scope at which each producer→consumer edge hands its tensor over. A maximal set of nodes joined by
// edges below `kernel` is a block and becomes one kernel. Planners differ in how they search for a plan; nothing after
// them knows which one made it.
#ifndef FUSION_COMPILER_FUSION_PLAN_H_
#define FUSION_COMPILER_FUSION_PLAN_H_

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/ecg/graph.h"

namespace fusion {

// Where an intermediate lives between producer and consumer, nearest first.
enum class Scope : uint8_t { kLane, kWarp, kBlock, kDevice, kKernel };
const char* ScopeName(Scope scope);  // "lane"

enum class Colour : uint8_t { kGreen, kYellow, kRed };  // DNNFusion Table 3

struct Edge {
  ecg::NodeId producer = ecg::kNone;
  ecg::NodeId consumer = ecg::kNone;
  ecg::ValueId value = ecg::kNone;
  Scope scope = Scope::kKernel;
};

struct FusionBlock {
  std::vector<ecg::NodeId> nodes;  // topological order
};

// Why an edge was fused or not; every refusal has a reason for people.
struct Decision {
  ecg::NodeId producer = ecg::kNone;
  ecg::NodeId consumer = ecg::kNone;
  Colour colour = Colour::kGreen;
  bool fused = false;
  std::string reason;
  double fused_ns = 0, separate_ns = 0;  // yellow: what was compared
  LatencySource source = LatencySource::kModel;
};

struct FusionPlan {
  std::vector<FusionBlock> blocks;  // a topological order of the quotient graph; every node in exactly one
  std::vector<Edge> edges;          // every producer→consumer edge between nodes
  std::vector<Decision> decisions;
};

// Would two blocks be faster as one?
struct FusionQuestion {
  std::vector<ecg::NodeId> producer, consumer;  // ascending

  std::vector<ecg::NodeId> Fused() const;
  bool operator==(const FusionQuestion& other) const {
    return producer == other.producer && consumer == other.consumer;
  }
  bool operator<(const FusionQuestion& other) const {
    return std::tie(producer, consumer) < std::tie(other.producer, other.consumer);
  }
};

// Both measured in turns, and `apart` as one run: the consumer finds what the producer left in the caches.
struct FusionAnswer {
  LatencyAnswer fused, apart;
};

// Answers parallel to the questions of BlockOracle::Compare.
struct FusionAnswers {
  std::vector<FusionAnswer> asked;
  std::vector<std::optional<FusionAnswer>> maybe;
};

// What a planner may ask about a set of nodes taken as one kernel. Implemented by the pipeline (schedules, database,
// workers); a fake in tests.
class BlockOracle {
 public:
  virtual ~BlockOracle() = default;
  // OK when the schedule and the device can hold the block as one kernel, else FAILED_PRECONDITION with the reason
  // (DNNFusion Listing 1's constraint check). Asked again for the same nodes, it answers from memory.
  virtual absl::Status CanSchedule(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) = 0;
  // Answers to all questions as one batch. `maybe`: those that may be asked next, the likeliest first; they are
  // answered as far as that costs little time, because devices are idle. Whether they are must not change a plan.
  virtual absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionQuestion>& questions,
                                                const std::vector<FusionQuestion>& maybe) = 0;
  // What the cost model says, at once: for guesses about answers to come. Blocks that CanSchedule accepted, or single
  // operators.
  virtual double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) = 0;
  // Is the answer known without measuring?
  virtual absl::StatusOr<bool> Knows(const ecg::Graph& /*graph*/, const FusionQuestion& /*question*/) { return false; }
  // How many measure at the same time. With one, no `maybe` is worth finding.
  virtual int Devices() const { return 1; }
};

struct PlanOptions {
  // Each latency is asked when it is needed, alone. Slow; the plan is that of batches.
  bool one_at_a_time = false;
  // Blocks that DNNFusion's table keeps apart may be tried as one.
  bool beyond_table = true;
  // A yellow case whose blocks are all estimated below this is decided by the estimates.
  double negligible_ns = 0;
  // So is one whose two sides are estimated more than this factor apart, unless both were measured before.
  double trusted_factor = std::numeric_limits<double>::infinity();
  std::function<void(int64_t done, int64_t total)> progress;  // may be empty
  std::function<bool()> cancelled;                            // may be empty
};

class Planner {
 public:
  virtual ~Planner() = default;
  virtual const char* name() const = 0;
  virtual absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, BlockOracle& oracle,
                                          const PlanOptions& options) const = 0;
};
// nullptr when unknown. The list is in compiler/fusion/planners/planner_list.cc.
const Planner* FindPlanner(const std::string& name);
std::vector<std::string> PlannerNames();

// Every node in one block, blocks convex (no path leaves a block and re-enters it) and in topological order, edges
// complete and in the graph, scope kKernel exactly on edges between blocks. INTERNAL naming the nodes.
absl::Status CheckPlan(const ecg::Graph& graph, const FusionPlan& plan);

// Values of a block that others read or the model returns: what its kernel stores.
std::vector<ecg::ValueId> LiveOut(const ecg::Graph& graph, const FusionBlock& block);

// Stable text of a plan, one block a line, with how its inner edges were decided: `block 3: Conv 'a', Relu 'b' [green
// 1, yellow 0]`; a block of one operator has no brackets.
std::string PrintPlan(const ecg::Graph& graph, const FusionPlan& plan);

}  // namespace fusion

#endif  // FUSION_COMPILER_FUSION_PLAN_H_
