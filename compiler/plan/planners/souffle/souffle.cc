#include "compiler/plan/planners/souffle/souffle.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/cost/typical_core.h"
#include "compiler/plan/planners/souffle/elements.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using souffle::CutAt;
using souffle::Element;
using NodeSet = std::vector<NodeId>;  // ascending

// Elements of one kernel, and operators of one: each longer kernel is scheduled anew, so that the time of planning
// grows with the square of the longest. The paper has no such limit.
constexpr size_t kMostElements = 12;
constexpr size_t kMostOperators = 128;
// Operators of a kernel that grows one by one, because the element that they are of cannot be a kernel.
constexpr size_t kMostGrown = 16;
// Elements of one kernel where all kernels are priced, of which there are more.
constexpr size_t kMostPricedElements = 6;
// Kernels that are scheduled, roughly: models of more elements have shorter kernels.
constexpr size_t kMostKernels = 600;
// A row of elements is not made longer if it is estimated slower than its parts by more than this factor, twice.
constexpr double kHopeless = 1.5;

// A kernel, and what it costs by the cost model.
struct Priced {
  FusionBlock fusion_block;
  FusionBlockAccount account;
  int subprogram = 0;
};

// The plan's requests about the hand-overs of a kernel.
enum class HandOvers {
  kTask,      // the default: stages share a task
  kAnywhere,  // with barriers where the schedule finds that cheaper
  kBarriers,  // with a barrier where an expression that reduces reads what other tasks make (sections 6.3 and 6.4)
};

class Partition {
 public:
  Partition(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle, const PlanOptions& options)
      : graph_(graph), device_(device), oracle_(oracle), options_(options) {}

  absl::Status Start(CutAt cut_at) {
    ASSIGN_OR_RETURN(facts_, souffle::FactsOf(graph_));
    elements_ = souffle::ElementsOf(graph_, facts_, cut_at);
    element_of_.assign(graph_.nodes().size(), 0);
    for (size_t e = 0; e < elements_.size(); ++e) {
      for (const NodeId id : elements_[e].nodes) element_of_[id] = e;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<FusionPlan> ByResources();
  absl::StatusOr<FusionPlan> ByPrice();

 private:
  NodeSet NodesOf(size_t first, size_t last) const;
  FusionBlock Asking(const NodeSet& nodes, HandOvers hand_overs) const;
  // The cheapest kernel of these nodes; nothing if there is none.
  std::optional<Priced> Kernel(const NodeSet& nodes);
  std::vector<Priced> Kernels(const NodeSet& nodes);
  void Divide(size_t first, size_t last, std::vector<Priced>* kernels);
  void AddSubprogram(size_t first, size_t last, std::vector<Priced>* kernels);
  bool Connected(size_t first, size_t last) const;
  absl::Status CheckCancelled(size_t done) const {
    if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
    if (options_.progress) options_.progress(static_cast<int64_t>(done), static_cast<int64_t>(elements_.size()));
    return absl::OkStatus();
  }
  FusionPlan Finish(std::vector<Priced> kernels) const;

  const ecg::Graph& graph_;
  const DeviceModel& device_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  std::vector<ecg::NodeExpressions> facts_;
  std::vector<Element> elements_;
  std::vector<size_t> element_of_;      // by node
  std::map<NodeId, std::string> cuts_;  // by the anchor behind the cut: why it is there
};

NodeSet Partition::NodesOf(size_t first, size_t last) const {
  NodeSet nodes;
  for (size_t e = first; e < last; ++e) nodes.insert(nodes.end(), elements_[e].nodes.begin(), elements_[e].nodes.end());
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

FusionBlock Partition::Asking(const NodeSet& nodes, HandOvers hand_overs) const {
  FusionBlock fusion_block(nodes);
  if (hand_overs == HandOvers::kTask) return fusion_block;
  for (HandOver edge : InnerHandOvers(graph_, fusion_block)) {
    const auto relies = facts_[edge.consumer].relies_on.find(edge.value);
    const bool many = relies != facts_[edge.consumer].relies_on.end() && relies->second == te::Dependence::kMany;
    edge.furthest = Scope::kDevice;
    // Within an element nothing crosses tiles but what a reduction of its own reads.
    if (hand_overs == HandOvers::kBarriers && many) edge.nearest = Scope::kDevice;
    fusion_block.inner.push_back(edge);
  }
  std::sort(fusion_block.inner.begin(), fusion_block.inner.end());
  return fusion_block;
}

std::optional<Priced> Partition::Kernel(const NodeSet& nodes) {
  std::optional<Priced> best;
  const auto try_one = [&](HandOvers hand_overs) {
    FusionBlock fusion_block = Asking(nodes, hand_overs);
    if (hand_overs != HandOvers::kTask && fusion_block.inner.empty()) return;
    const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, fusion_block);
    if (fit.ok() && (!best || fit->estimate_ns < best->account.estimate_ns)) best = {std::move(fusion_block), *fit};
  };
  try_one(HandOvers::kTask);
  if (nodes.size() == 1) {
    if (!best) {
      best = {FusionBlock(nodes), {}};
      best->account.estimate_ns = oracle_.EstimateNs(graph_, nodes);
    }
    return best;
  }
  // Where a barrier costs as much as a launch, it gains nothing but what its two sides hand over; there one reduction
  // behind one product is tried, whose first half may then join the product.
  const int units = device_.parallel_units;
  const bool barriers_pay = device_.BarrierSeconds(units) < device_.LaunchSeconds(units);
  if (barriers_pay || element_of_[nodes.back()] - element_of_[nodes.front()] == 1) try_one(HandOvers::kBarriers);
  if (barriers_pay && !best) try_one(HandOvers::kAnywhere);
  return best;
}

// The fewest kernels of these nodes, which are one element or part of one, that the oracle accepts: each takes as many
// nodes as it can, in order.
std::vector<Priced> Partition::Kernels(const NodeSet& nodes) {
  if (nodes.size() <= kMostOperators) {
    if (std::optional<Priced> one = Kernel(nodes)) return {*std::move(one)};
  }
  std::vector<Priced> kernels;
  NodeSet open;
  std::optional<Priced> best;
  for (const NodeId id : nodes) {
    NodeSet more = open;
    more.push_back(id);
    std::optional<Priced> with = more.size() <= kMostGrown ? Kernel(more) : std::nullopt;
    if (!with) {
      kernels.push_back(*std::move(best));
      more = {id};
      with = Kernel(more);
    }
    open = std::move(more);
    best = std::move(with);
  }
  kernels.push_back(*std::move(best));
  return kernels;
}

// One kernel of the elements, or two halves that are divided in the same way.
void Partition::Divide(size_t first, size_t last, std::vector<Priced>* kernels) {
  if (last - first == 1) {
    std::vector<Priced> few = Kernels(elements_[first].nodes);
    std::move(few.begin(), few.end(), std::back_inserter(*kernels));
    return;
  }
  const NodeSet nodes = NodesOf(first, last);
  const bool within = last - first <= kMostElements && nodes.size() <= kMostOperators;
  if (within) {
    if (std::optional<Priced> one = Kernel(nodes)) {
      kernels->push_back(*std::move(one));
      return;
    }
  }
  const size_t middle = first + (last - first) / 2;
  cuts_.emplace(elements_[middle].anchor,
                within
                    ? "they cannot be one kernel"
                    : absl::StrFormat("%d expressions of %d operators are too many for one kernel: %d and %d are the "
                                      "limits",
                                      last - first, nodes.size(), kMostElements, kMostOperators));
  Divide(first, middle, kernels);
  Divide(middle, last, kernels);
}

// Section 5.4: a subprogram takes one expression after another, as long as `max_grid · max_occ < C` holds for the
// compute-intensive ones in it: all work-groups of the largest grid, each with the most registers and the most shared
// memory that any of them takes, would be on the device at once. A unit runs a task at a time where the device has no
// such limits.
absl::StatusOr<FusionPlan> Partition::ByResources() {
  const UnitLimits& limits = device_.unit_limits;
  const int64_t units = device_.parallel_units;
  std::vector<Priced> kernels;
  size_t first = 0;
  int64_t grid = 0, registers = 0, shared = 0;
  for (size_t e = 0; e < elements_.size(); ++e) {
    RETURN_IF_ERROR(CheckCancelled(e));
    const Element& element = elements_[e];
    std::string why;
    if (element.routine || (e > 0 && elements_[e - 1].routine)) {
      why = "no expression describes what one of them does";
    } else if (element.compute_intensive) {
      FusionBlockAccount alone;
      if (const auto fit = oracle_.Fit(graph_, FusionBlock({element.anchor})); fit.ok()) alone = *fit;
      const int64_t its_grid = alone.work_groups;
      int64_t its_registers = 0, its_shared = 0;
      if (alone.occupancy) {
        its_registers = int64_t{alone.occupancy->demand.registers} * alone.occupancy->demand.work_items;
        its_shared = alone.occupancy->demand.shared_bytes + limits.reserved_bytes;
      }
      const int64_t most_grid = std::max(grid, its_grid);
      const int64_t most_registers = std::max(registers, its_registers), most_shared = std::max(shared, its_shared);
      if (!limits.Known() && most_grid > units) {
        why =
            absl::StrFormat("max_grid %d exceeds the %d units, each of which runs a task at a time", most_grid, units);
      } else if (limits.Known() && most_grid * most_registers >= units * limits.registers) {
        why = absl::StrFormat("max_grid %d times %d registers is not below the device's %d", most_grid, most_registers,
                              units * limits.registers);
      } else if (limits.Known() && most_grid * most_shared >= units * limits.shared_bytes) {
        why = absl::StrFormat("max_grid %d times %d bytes of shared memory is not below the device's %d", most_grid,
                              most_shared, units * limits.shared_bytes);
      }
      if (why.empty()) {
        grid = most_grid, registers = most_registers, shared = most_shared;
      } else {
        grid = its_grid, registers = its_registers, shared = its_shared;
      }
    }
    if (why.empty() || e == first) continue;
    cuts_.emplace(element.anchor, why);
    AddSubprogram(first, e, &kernels);
    first = e;
  }
  if (first < elements_.size()) AddSubprogram(first, elements_.size(), &kernels);
  std::vector<int> subprograms;
  for (const Priced& kernel : kernels) subprograms.push_back(kernel.subprogram);
  FusionPlan plan = Finish(std::move(kernels));
  plan.subprograms = std::move(subprograms);
  return plan;
}

// A subprogram is one launch, also where it is too long to be scheduled as one kernel.
void Partition::AddSubprogram(size_t first, size_t last, std::vector<Priced>* kernels) {
  const size_t before = kernels->size();
  Divide(first, last, kernels);
  const int number = before == 0 ? 0 : (*kernels)[before - 1].subprogram + 1;
  for (size_t k = before; k < kernels->size(); ++k) (*kernels)[k].subprogram = number;
}

// Does each element of the row read from, or read the same as, an earlier one of it? Reading the same is the paper's
// spatial reuse (section 5.1).
bool Partition::Connected(size_t first, size_t last) const {
  std::set<ecg::ValueId> known;
  for (size_t e = first; e < last; ++e) {
    bool meets = e == first;
    for (const NodeId id : elements_[e].nodes) {
      for (const ecg::ValueId v : graph_.node(id).inputs) {
        if (v != ecg::kNone && !graph_.value(v).constant.has_value()) meets |= known.count(v) > 0;
      }
    }
    if (!meets) return false;
    for (const NodeId id : elements_[e].nodes) {
      for (const auto* values : {&graph_.node(id).inputs, &graph_.node(id).outputs})
        known.insert(values->begin(), values->end());
    }
  }
  return true;
}

// The cuts with which the row of elements costs least, where each kernel is priced alone: the best plan up to an
// element is the best plan up to the kernel that ends there, and that kernel.
absl::StatusOr<FusionPlan> Partition::ByPrice() {
  const size_t n = elements_.size();
  const size_t longest = std::clamp<size_t>(n > 0 ? kMostKernels / n : 1, 1, kMostPricedElements);
  struct Best {
    double ns = std::numeric_limits<double>::infinity();
    size_t from = 0;
    std::vector<Priced> kernels;
  };
  std::vector<Best> best(n + 1);
  best[0].ns = 0;
  for (size_t last = 1; last <= n; ++last) {
    RETURN_IF_ERROR(CheckCancelled(last - 1));
    int hopeless = 0;
    for (size_t first = last; first-- > 0 && last - first <= longest && hopeless < 2;) {
      if (first + 1 < last && (elements_[first].routine || elements_[last - 1].routine)) break;
      const NodeSet nodes = NodesOf(first, last);
      if (first + 1 < last && nodes.size() > kMostOperators) break;
      if (!Connected(first, last)) continue;
      std::vector<Priced> kernels;
      if (first + 1 == last) {
        kernels = Kernels(nodes);
      } else if (std::optional<Priced> one = Kernel(nodes)) {
        kernels.push_back(*std::move(one));
      }
      double ns = best[first].ns;
      for (const Priced& kernel : kernels) ns += kernel.account.estimate_ns;
      if (kernels.empty() || ns > best[first].ns + kHopeless * (best[last].ns - best[first].ns)) ++hopeless;
      if (!kernels.empty() && ns < best[last].ns) best[last] = {ns, first, std::move(kernels)};
    }
  }
  std::vector<Priced> kernels;
  for (size_t at = n; at > 0; at = best[at].from) {
    if (best[at].from > 0) cuts_.emplace(elements_[best[at].from].anchor, "estimated faster with a cut there");
    kernels.insert(kernels.begin(), std::make_move_iterator(best[at].kernels.begin()),
                   std::make_move_iterator(best[at].kernels.end()));
  }
  return Finish(std::move(kernels));
}

FusionPlan Partition::Finish(std::vector<Priced> kernels) const {
  FusionPlan plan;
  std::vector<int> owner(graph_.nodes().size(), -1);
  for (Priced& kernel : kernels) {
    for (const NodeId id : kernel.fusion_block.nodes) owner[id] = static_cast<int>(plan.fusion_blocks.size());
    plan.fusion_blocks.push_back(std::move(kernel.fusion_block));
  }
  std::set<std::pair<NodeId, NodeId>> decided;
  for (NodeId id = 0; id < static_cast<int>(owner.size()); ++id) {
    for (const ecg::ValueId v : graph_.node(id).inputs) {
      const NodeId producer = v == ecg::kNone ? ecg::kNone : graph_.value(v).producer;
      if (producer == ecg::kNone || !decided.emplace(producer, id).second) continue;
      Decision& decision = plan.decisions.emplace_back();
      decision.producer = producer;
      decision.consumer = id;
      decision.fused = owner[producer] == owner[id];
      if (decision.fused) {
        decision.reason = element_of_[producer] == element_of_[id] ? "it follows the expression whose results reach it"
                                                                   : "both are in one subprogram";
        continue;
      }
      // The last cut between the two.
      decision.reason = "they cannot be one kernel";
      for (size_t e = element_of_[id]; e > element_of_[producer]; --e) {
        const auto cut = cuts_.find(elements_[e].anchor);
        if (cut == cuts_.end()) continue;
        decision.reason = elements_[e].anchor == ecg::kNone
                              ? cut->second
                              : absl::StrCat("cut at ", graph_.node(elements_[e].anchor).op, " '",
                                             graph_.node(elements_[e].anchor).name, "': ", cut->second);
        break;
      }
    }
  }
  return plan;
}

class Souffle : public Planner {
 public:
  Souffle(const char* name, bool by_price) : name_(name), by_price_(by_price) {}
  const char* name() const override { return name_; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    const DeviceModel typical = WithTypicalRates(device);  // the same at every registration of a device
    Partition partition(graph, typical, oracle, options);
    RETURN_IF_ERROR(partition.Start(by_price_ ? CutAt::kReductions : CutAt::kComputeIntensive));
    return by_price_ ? partition.ByPrice() : partition.ByResources();
  }

 private:
  const char* const name_;
  const bool by_price_;
};

}  // namespace

const Planner* SoufflePlanner() {
  static const auto* const kPlanner = new Souffle("souffle", true);
  return kPlanner;
}

const Planner* SoufflePaperPlanner() {
  static const auto* const kPlanner = new Souffle("souffle-paper", false);
  return kPlanner;
}

}  // namespace fusion
