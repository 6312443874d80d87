// FusionPlan: which nodes share a kernel, and at which scopes they may hand values to each other there. Edges between
// fusion blocks have the scope `kernel`. Planners differ in how they search for a plan; nothing after them knows which
// planner made it.
#ifndef FUSION_COMPILER_PLAN_PLAN_H_
#define FUSION_COMPILER_PLAN_PLAN_H_

#include <compare>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/cost/occupancy.h"
#include "compiler/ecg/graph.h"
#include "compiler/plan/fusion_block.h"

namespace fusion {

// The basis of a decision about an edge: a rule of the planner, or latencies that were compared.
enum class Basis : uint8_t { kRule, kLatency };
const char* BasisName(Basis basis);  // "rule"

// Why an edge was fused or not. Each refusal has a reason for people.
struct Decision {
  ecg::NodeId producer = ecg::kNone;
  ecg::NodeId consumer = ecg::kNone;
  Basis basis = Basis::kRule;
  bool fused = false;
  std::string reason;
  double fused_ns = 0, separate_ns = 0;  // kLatency: those that were compared
  LatencySource source = LatencySource::kModel;
};

struct OfferedPlan;

struct FusionPlan {
  std::vector<FusionBlock> fusion_blocks;  // in a topological order of the quotient graph; exactly one owns each node
  std::vector<Decision> decisions;
  // By fusion block: neighbours of one number are to be one launch with barriers of the device between their kernels,
  // where the device can (Souffle, section 6.4). Empty: each kernel is a launch.
  std::vector<int> subprograms = {};
  // The plans that a planner chose among (`auto`), this one included, the best first.
  std::vector<OfferedPlan> offers;
};

// The cost model's estimates for a whole plan.
struct PlanEstimate {
  double ns = 0;         // of one run among many
  int64_t launches = 0;  // batches count once
  int64_t barriers = 0;  // of the device, within launches
};

// A plan that a planner was offered by another one, or made of such plans.
struct OfferedPlan {
  std::string name;  // of the planner
  FusionPlan plan;   // without offers
  PlanEstimate estimate;
  bool measured = false;  // the planner's decisions rest on measurements
  std::string reason;     // for people: why it was chosen, or not; why it is empty
};

// Ways to run the same nodes, of which one is to be chosen: as one fusion block or as several, with other hand-overs or
// other directives. The fusion blocks of a way run one after another.
struct FusionComparison {
  std::vector<std::vector<FusionBlock>> ways;  // two or more

  auto operator<=>(const FusionComparison&) const = default;
};

// Parallel to the ways. All latencies come from one paired measurement. The latency of a way is one run of all its
// kernels, in which each finds what those before it left in the caches.
using WayLatencies = std::vector<LatencyAnswer>;

// Answers parallel to the questions of FusionOracle::Compare.
struct FusionAnswers {
  std::vector<WayLatencies> asked;
  std::vector<std::optional<WayLatencies>> maybe;
};

// Bytes that a kernel moves at a level of the device's memory.
struct LevelBytes {
  std::string level;  // DeviceModel::memory's name: "L2"
  double bytes = 0;
};

// The demands and the cost of one kernel.
struct FusionBlockAccount {
  int64_t phases = 1;                  // barriers of the device: one less
  // By phase: the positions of the members for which it computes, ascending. A member may be computed again in a later
  // phase; a reduction in two phases is split. Empty where the kernel is a routine.
  std::vector<std::vector<int>> phase_members;
  int64_t tasks = 0;                   // of the phase that has most
  int64_t work_groups = 0;             // of the launch that has most
  int64_t scratch_bytes = 0;           // of a task
  int64_t device_scope_bytes = 0;      // that phases hand to each other
  int registers = 0;                   // the most values that a task keeps at once, of a lane
  int64_t code_bytes = 0;              // of the largest loop, roughly
  std::vector<LevelBytes> bytes;       // nearest level first; levels that serve nothing are left out
  std::optional<Occupancy> occupancy;  // of the phase that has least, on devices that have it
  double estimate_ns = 0;              // by the cost model, at typical rates of the device
};

// The questions that a planner may ask about a set of nodes taken as one kernel. The pipeline implements it with
// schedules, database and workers; tests use a fake.
class FusionOracle {
 public:
  virtual ~FusionOracle() = default;
  // Returns what the fusion block is as one kernel, with hand-overs at the scopes that it allows. Fails with
  // FAILED_PRECONDITION and the reason where the schedule or the device cannot do that (DNNFusion Listing 1's
  // constraint check). Asked again for the same fusion block, it answers from memory.
  virtual absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) = 0;
  // Answers all questions as one batch. `maybe` are questions that may be asked next, the likeliest first. They are
  // answered only as far as that costs little time, because devices are idle. Whether they are answered must not change
  // a plan.
  virtual absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                                const std::vector<FusionComparison>& maybe) = 0;
  // Returns the cost model's estimate at once, for guesses about answers to come. `nodes` is a fusion block that
  // Fit accepted, or a single operator.
  virtual double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) = 0;
  // Estimates a whole plan as a sequence: each of its kernels finds in the caches what those before it, and the run
  // before, have left there. The fusion blocks own every node of the graph, in an order in which they can run; each is
  // one that Fit accepted, or a single operator. The default adds up the estimates of the fusion blocks.
  virtual absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph& graph,
                                                    const std::vector<FusionBlock>& fusion_blocks);
  // Is the answer known without measuring?
  virtual absl::StatusOr<bool> Knows(const ecg::Graph& /*graph*/, const FusionComparison& /*question*/) {
    return false;
  }
  // Number of devices that measure at the same time. With one, looking for `maybe` questions does not pay.
  virtual int Devices() const { return 1; }
};

struct PlanOptions {
  // Asks for each latency when it is needed, one at a time. Slow; the plan is the same as with batches.
  bool one_at_a_time = false;
  // Fusion blocks that DNNFusion's table keeps apart may be tried as one.
  bool beyond_table = true;
  // The estimates decide a case whose latencies, fused and apart, are both estimated below this.
  double negligible_ns = 0;
  // The estimates also decide a case whose two sides they put more than this factor apart, unless both were
  // measured before.
  double trusted_factor = std::numeric_limits<double>::infinity();
  std::function<void(int64_t done, int64_t total)> progress;  // may be empty
  std::function<bool()> cancelled;                            // may be empty
  // Called when a planner that runs others begins a part of its work ("dnnfusion"), for an account of the time. May be
  // empty.
  std::function<void(const std::string& part)> begin;
};

class Planner {
 public:
  virtual ~Planner() = default;
  virtual const char* name() const = 0;
  // Does it plan over composites that are opened (simplify::OpenComposites), so that it can cut inside operators? What
  // it fuses again is the operator's kernel.
  virtual bool WantsOpened() const { return false; }
  // Does `auto` ask it for a second plan, by measurements, where somebody measures? Each of its questions costs a
  // worker some tenths of a second.
  virtual bool OffersMeasured() const { return false; }
  virtual absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                          const PlanOptions& options) const = 0;
};
// Returns nullptr when unknown. The list is in compiler/plan/planners/planner_list.cc.
const Planner* FindPlanner(const std::string& name);
std::vector<std::string> PlannerNames();

// Checks that exactly one fusion block owns each node, that fusion blocks are convex (no path leaves a fusion block and
// re-enters it) and in topological order, that what a fusion block recomputes is available to it, that `unread` values
// are read by nobody, that what is read is stored, and that every hand-over of which something is asked is an edge of
// the graph between two members and has a scope below kKernel. Fails with INTERNAL naming the nodes.
absl::Status CheckPlan(const ecg::Graph& graph, const FusionPlan& plan);

// Prints a plan in a stable text, one fusion block a line, with how its inner edges were decided: `fusion block 3: Conv
// 'a', Relu 'b' [1 by rule, 0 by latency]`. A fusion block of one operator has no brackets. `notes`: what else to say
// about each fusion block, or nothing.
std::string PrintPlan(const ecg::Graph& graph, const FusionPlan& plan, const std::vector<std::string>& notes = {});

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLAN_H_
