#include "compiler/plan/planners/auto/auto.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/plan/planners/auto/plan_search.h"
#include "compiler/plan/planners/none/none.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr char kName[] = "auto";
// The median error of the price of a whole plan at typical rates, as a part of its time (decision 35). Without a
// measurement a smaller difference decides nothing: ResNet-50 in 31 kernels was estimated 3% faster than in 49, and was
// slower by a fifth.
constexpr double kPlanError = 0.063;
// Fusion blocks that planners have asked about, beyond which no further planner is asked. Scheduling takes about a
// millisecond for each, so that 10,000 operators of which no two layers are alike stay near ten seconds.
constexpr size_t kMostAsked = 8000;
// Plans beside the best one whose fusion blocks the search may take.
constexpr size_t kPlansToCombine = 3;

// Answers comparisons with the cost model's estimates, and notes what was asked and which fusion blocks are possible.
class Estimates : public FusionOracle {
 public:
  explicit Estimates(FusionOracle& oracle) : oracle_(oracle) {}

  absl::StatusOr<FusionBlockAccount> Fit(const ecg::Graph& graph, const FusionBlock& fusion_block) override {
    asked_.insert(fusion_block);
    absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph, fusion_block);
    if (fit.ok() && fusion_block == FusionBlock(fusion_block.nodes))
      known_.emplace(fusion_block.nodes, fit->estimate_ns);
    return fit;
  }
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionComparison>& questions,
                                        const std::vector<FusionComparison>& maybe) override {
    FusionAnswers answers;
    for (const FusionComparison& question : questions) {
      WayLatencies& ways = answers.asked.emplace_back();
      for (const std::vector<FusionBlock>& fusion_blocks : question.ways) {
        LatencyAnswer& way = ways.emplace_back();
        for (const FusionBlock& fusion_block : fusion_blocks) way.latency_ns += Estimate(graph, fusion_block);
      }
    }
    answers.maybe.resize(maybe.size());
    return answers;
  }
  double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override {
    return oracle_.EstimateNs(graph, nodes);
  }
  absl::StatusOr<PlanEstimate> EstimatePlan(const ecg::Graph& graph,
                                            const std::vector<FusionBlock>& fusion_blocks) override {
    return oracle_.EstimatePlan(graph, fusion_blocks);
  }

  // Different fusion blocks that Fit was called with.
  size_t Asked() const { return asked_.size(); }

  std::vector<KnownFusionBlock> Known() const {
    std::vector<KnownFusionBlock> known;
    for (const auto& [nodes, ns] : known_) known.push_back({nodes, ns});
    return known;
  }

 private:
  double Estimate(const ecg::Graph& graph, const FusionBlock& fusion_block) {
    if (fusion_block == FusionBlock(fusion_block.nodes)) return oracle_.EstimateNs(graph, fusion_block.nodes);
    const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph, fusion_block);
    return fit.ok() ? fit->estimate_ns : 0;
  }

  FusionOracle& oracle_;
  std::set<FusionBlock> asked_;
  std::map<std::vector<ecg::NodeId>, double> known_;
};

bool RestsOnMeasurements(const FusionPlan& plan) {
  return std::any_of(plan.decisions.begin(), plan.decisions.end(), [](const Decision& one) {
    return one.basis == Basis::kLatency && one.fused_ns > 0 && IsMeasured(one.source);
  });
}

// The other planners, the preferred one first, in the order of their list.
std::vector<std::string> Others() {
  std::vector<std::string> names = PlannerNames();
  std::erase_if(names, [](const std::string& name) { return name == kName; });
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name == kPreferredPlanner; });
  return names;
}

class Auto : public Planner {
 public:
  const char* name() const override { return kName; }

  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel& device, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    if (graph.nodes().empty()) return FusionPlan();  // every planner's plan
    Estimates estimates(oracle);
    std::vector<OfferedPlan> offers;
    absl::Status refused;
    const auto begin = [&](const std::string& part) {
      if (options.begin) options.begin(part);
    };
    for (const std::string& name : Others()) {
      if (estimates.Asked() >= kMostAsked && name != kUnfusedPlanner) {
        offers.emplace_back().name = name;
        offers.back().reason =
            absl::StrCat("not asked, since ", estimates.Asked(), " fusion blocks were looked at for other planners");
        continue;
      }
      begin(name);
      RETURN_IF_ERROR(Offer(name, graph, device, estimates, options, &offers, &refused));
      if (!FindPlanner(name)->OffersMeasured()) continue;
      begin(absl::StrCat(name, " by measurements"));
      RETURN_IF_ERROR(OfferMeasured(name, graph, device, oracle, options, &offers, &refused));
    }
    // Stable, so that of equal plans the preferred planner's comes first. A plan without an estimate is none.
    std::stable_sort(offers.begin(), offers.end(),
                     [](const OfferedPlan& a, const OfferedPlan& b) { return Key(a) < Key(b); });
    // A graph that no planner can plan (nothing lowers an operator) has the reason that the preferred one gives.
    if (offers[0].plan.fusion_blocks.empty()) return refused;
    begin(kCombinedPlan);
    RETURN_IF_ERROR(Improve(graph, options, &estimates, &offers));
    return Chosen(std::move(offers));
  }

 private:
  static std::pair<bool, double> Key(const OfferedPlan& offer) {
    return {offer.plan.fusion_blocks.empty(), offer.estimate.ns};
  }

  static absl::Status Offer(const std::string& name, const ecg::Graph& graph, const DeviceModel& device,
                            FusionOracle& oracle, const PlanOptions& options, std::vector<OfferedPlan>* offers,
                            absl::Status* refused) {
    OfferedPlan& offer = offers->emplace_back();
    offer.name = name;
    absl::StatusOr<FusionPlan> plan = FindPlanner(name)->Plan(graph, device, oracle, options);
    if (absl::IsCancelled(plan.status())) return plan.status();
    absl::Status made = plan.status();
    if (made.ok()) made = CheckPlan(graph, *plan);
    if (made.ok()) {
      const absl::StatusOr<PlanEstimate> estimate = oracle.EstimatePlan(graph, plan->fusion_blocks);
      made = estimate.status();
      if (made.ok()) {
        offer.plan = *std::move(plan);
        offer.estimate = *estimate;
        return absl::OkStatus();
      }
    }
    offer.reason = absl::StrCat("no plan: ", made.message());
    refused->Update(made);
    return absl::OkStatus();
  }

  // A planner's plan by measurements; nothing where nobody measures, or where another plan that rests on measurements
  // is the same.
  static absl::Status OfferMeasured(const std::string& name, const ecg::Graph& graph, const DeviceModel& device,
                                    FusionOracle& oracle, const PlanOptions& options, std::vector<OfferedPlan>* offers,
                                    absl::Status* refused) {
    RETURN_IF_ERROR(Offer(name, graph, device, oracle, options, offers, refused));
    OfferedPlan& made = offers->back();
    made.measured = RestsOnMeasurements(made.plan);
    const bool known = std::any_of(offers->begin(), offers->end() - 1, [&](const OfferedPlan& other) {
      return other.measured && other.plan.fusion_blocks == made.plan.fusion_blocks;
    });
    if (!made.measured || known) offers->pop_back();
    return absl::OkStatus();
  }

  // Adds the plan that the search makes, if it is estimated faster than all others, at its place: the first.
  static absl::Status Improve(const ecg::Graph& graph, const PlanOptions& options, Estimates* estimates,
                              std::vector<OfferedPlan>* offers) {
    PlanSearch search(graph, *estimates, options, SearchLimits(), estimates->Known());
    RETURN_IF_ERROR(search.Start((*offers)[0].plan));
    std::vector<const FusionPlan*> others;
    for (size_t o = 1; o < offers->size() && others.size() < kPlansToCombine; ++o) {
      if (!(*offers)[o].plan.fusion_blocks.empty()) others.push_back(&(*offers)[o].plan);
    }
    RETURN_IF_ERROR(search.Combine(others));
    RETURN_IF_ERROR(search.Move());
    if (search.changes() == 0 || search.estimate().ns >= (*offers)[0].estimate.ns) return absl::OkStatus();
    OfferedPlan combined{kCombinedPlan, search.Plan(), search.estimate()};
    combined.reason = absl::StrFormat("%d changes to the plan of %s, of %d that were estimated as a whole",
                                      search.changes(), (*offers)[0].name, search.plans_estimated());
    offers->insert(offers->begin(), std::move(combined));
    return absl::OkStatus();
  }

  // The preferred planner's plan that rests on measurements, which know more than estimates; else the preferred
  // planner's, if the estimates of whole plans are too rough to say that another is faster; else the first offer. Whole
  // plans are measured elsewhere.
  static FusionPlan Chosen(std::vector<OfferedPlan> offers) {
    const auto find = [&](const auto& is) { return std::find_if(offers.begin(), offers.end(), is); };
    const auto measured =
        find([](const OfferedPlan& offer) { return offer.measured && offer.name == kPreferredPlanner; });
    const auto preferred = find([](const OfferedPlan& offer) { return offer.name == kPreferredPlanner; });
    const auto unfused = find([](const OfferedPlan& offer) { return offer.name == kUnfusedPlanner; });
    auto chosen = offers.begin();
    std::string why = "estimated the fastest as a whole";
    if (measured != offers.end()) {
      chosen = measured;
      why = "rests on measurements of kernels";
    } else if (preferred != offers.begin() && !preferred->plan.fusion_blocks.empty() &&
               !(unfused->estimate.ns < preferred->estimate.ns) &&
               (1 - kPlanError) * preferred->estimate.ns < chosen->estimate.ns) {
      why = absl::StrFormat("estimates cannot tell it from the plan of %s, which is estimated %.1f%% faster",
                            chosen->name, 100 * (1 - chosen->estimate.ns / preferred->estimate.ns));
      chosen = preferred;
    }
    std::rotate(offers.begin(), chosen, chosen + 1);
    OfferedPlan& first = offers[0];
    first.reason = first.reason.empty() ? why : absl::StrCat(why, ": ", first.reason);
    FusionPlan plan = first.plan;
    plan.offers = std::move(offers);
    return plan;
  }
};

}  // namespace

const Planner* AutoPlanner() {
  static const auto* const kPlanner = new Auto;
  return kPlanner;
}

}  // namespace fusion
