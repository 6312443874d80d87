#include "compiler/plan/planners/auto/plan_search.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/plan/order_fusion_blocks.h"
#include "compiler/plan/planners/auto/choose_fusion_blocks.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;

// A change must make the whole plan faster by at least this share of the time of the fusion blocks that it replaces.
// The cost model knows no better: nine of ten of its estimates of a kernel are off by more.
constexpr double kLeastGain = 0.02;
// A change is not tried on the whole plan if the fusion blocks alone become slower by more than this factor: what they
// find in the caches makes up for less.
constexpr double kHopeless = 1.25;
constexpr int kRounds = 3;
// The splits of a fusion block whose halves are the fastest alone are tried on the whole plan.
constexpr size_t kSplits = 4;

bool Plain(const FusionBlock& fusion_block) {
  return fusion_block.recomputed.empty() && fusion_block.unread.empty() && fusion_block.kept.empty();
}

bool Contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

// One fusion block of both.
FusionBlock Union(const FusionBlock& a, const FusionBlock& b) {
  FusionBlock both;
  std::merge(a.nodes.begin(), a.nodes.end(), b.nodes.begin(), b.nodes.end(), std::back_inserter(both.nodes));
  std::merge(a.inner.begin(), a.inner.end(), b.inner.begin(), b.inner.end(), std::back_inserter(both.inner));
  std::merge(a.directives.begin(), a.directives.end(), b.directives.begin(), b.directives.end(),
             std::back_inserter(both.directives));
  return both;
}

// The part of a fusion block that these nodes are, with what it asks of them.
FusionBlock Part(const FusionBlock& whole, std::vector<NodeId> nodes) {
  FusionBlock part(std::move(nodes));
  for (const HandOver& one : whole.inner) {
    if (Contains(part.nodes, one.producer) && Contains(part.nodes, one.consumer)) part.inner.push_back(one);
  }
  for (const Directive& one : whole.directives) {
    if (one.node != ecg::kNone && Contains(part.nodes, one.node)) part.directives.push_back(one);
  }
  return part;
}

// Pairs of `nodes` (by position) of which the first runs before the second, because that reads what the first makes or
// what nodes elsewhere have made of it.
std::vector<std::pair<int, int>> Precedence(const ecg::Graph& graph, const std::vector<NodeId>& nodes) {
  std::set<std::pair<int, int>> pairs;
  const auto position = [&](NodeId id) {
    return static_cast<int>(std::lower_bound(nodes.begin(), nodes.end(), id) - nodes.begin());
  };
  for (const NodeId from : nodes) {
    std::vector<NodeId> stack = {from};
    std::set<NodeId> seen;
    while (!stack.empty()) {
      const NodeId at = stack.back();
      stack.pop_back();
      for (const ecg::ValueId v : graph.node(at).outputs) {
        if (v == ecg::kNone) continue;
        for (const NodeId reader : graph.value(v).consumers) {
          if (Contains(nodes, reader)) {
            pairs.emplace(position(from), position(reader));
          } else if (reader < nodes.back() && seen.insert(reader).second) {
            stack.push_back(reader);
          }
        }
      }
    }
  }
  return {pairs.begin(), pairs.end()};
}

}  // namespace

PlanSearch::PlanSearch(const ecg::Graph& graph, FusionOracle& oracle, const PlanOptions& options,
                       const SearchLimits& limits, std::vector<KnownFusionBlock> known)
    : graph_(graph), oracle_(oracle), options_(options), limits_(limits) {
  for (KnownFusionBlock& fusion_block : known) known_[fusion_block.nodes.front()].push_back(std::move(fusion_block));
}

absl::Status PlanSearch::CheckCancelled() const {
  if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
  return absl::OkStatus();
}

absl::Status PlanSearch::Start(const FusionPlan& plan) {
  start_ = plan;
  start_.offers.clear();
  reasons_.clear();
  std::optional<FusionBlocks> ordered = OrderFusionBlocks(graph_, plan.fusion_blocks);
  if (!ordered) return absl::InternalError("the fusion blocks of a plan wait for each other");
  fusion_blocks_ = *std::move(ordered);
  ASSIGN_OR_RETURN(estimate_, oracle_.EstimatePlan(graph_, fusion_blocks_));
  return absl::OkStatus();
}

std::vector<int> PlanSearch::Owners(const FusionBlocks& fusion_blocks) const {
  std::vector<int> owner(graph_.nodes().size(), -1);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    for (const NodeId id : fusion_blocks[b].nodes) owner[id] = static_cast<int>(b);
  }
  return owner;
}

double PlanSearch::Estimate(const FusionBlock& fusion_block) {
  if (const auto known = estimates_.find(fusion_block); known != estimates_.end()) return known->second;
  ++fits_;
  double ns = -1;
  if (const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, fusion_block); fit.ok()) {
    ns = fit->estimate_ns;
  } else if (fusion_block.Members().size() == 1) {
    ns = oracle_.EstimateNs(graph_, fusion_block.nodes);
  }
  return estimates_.emplace(fusion_block, ns).first->second;
}

absl::StatusOr<bool> PlanSearch::Try(const std::vector<size_t>& gone, const FusionBlocks& made,
                                     const std::string& how) {
  std::vector<double> look = {};
  double before = 0, after = 0;
  for (const size_t b : gone) before += look.emplace_back(Estimate(fusion_blocks_[b]));
  look.push_back(-1);  // between before and after
  for (const FusionBlock& fusion_block : made) {
    const double ns = look.emplace_back(Estimate(fusion_block));
    if (ns < 0) return false;
    after += ns;
  }
  if (after > kHopeless * before || vain_.count(look) > 0 || Spent()) return false;
  FusionBlocks changed;
  for (size_t b = 0; b < fusion_blocks_.size(); ++b) {
    if (!std::binary_search(gone.begin(), gone.end(), b)) changed.push_back(fusion_blocks_[b]);
  }
  changed.insert(changed.end(), made.begin(), made.end());
  std::optional<FusionBlocks> ordered = OrderFusionBlocks(graph_, std::move(changed));
  if (!ordered) return false;
  RETURN_IF_ERROR(CheckCancelled());
  ++plans_;
  kernels_ += static_cast<int64_t>(ordered->size());
  ASSIGN_OR_RETURN(const PlanEstimate estimate, oracle_.EstimatePlan(graph_, *ordered));
  if (estimate.ns > estimate_.ns - kLeastGain * before) {
    vain_.insert(std::move(look));
    return false;
  }
  const std::vector<int> old_owner = Owners(fusion_blocks_), new_owner = Owners(*ordered);
  for (const FusionBlock& fusion_block : made) {
    for (const NodeId id : fusion_block.nodes) {
      for (const ecg::ValueId v : graph_.node(id).inputs) {
        const NodeId producer = v == ecg::kNone ? ecg::kNone : graph_.value(v).producer;
        if (producer == ecg::kNone) continue;
        const bool together = new_owner[producer] == new_owner[id];
        if (together == (old_owner[producer] == old_owner[id])) continue;
        reasons_[{producer, id}] = absl::StrFormat("%s: the whole plan is estimated %.1f us instead of %.1f", how,
                                                   estimate.ns / 1e3, estimate_.ns / 1e3);
      }
    }
  }
  fusion_blocks_ = *std::move(ordered);
  estimate_ = estimate;
  ++changes_;
  return true;
}

std::vector<std::pair<size_t, size_t>> PlanSearch::Neighbours() const {
  const std::vector<int> owner = Owners(fusion_blocks_);
  std::set<std::pair<size_t, size_t>> pairs;
  for (NodeId id = 0; id < static_cast<int>(owner.size()); ++id) {
    for (const ecg::ValueId v : graph_.node(id).inputs) {
      const NodeId producer = v == ecg::kNone ? ecg::kNone : graph_.value(v).producer;
      if (producer != ecg::kNone && owner[producer] != owner[id]) pairs.emplace(owner[producer], owner[id]);
    }
  }
  return {pairs.begin(), pairs.end()};
}

absl::StatusOr<bool> PlanSearch::TryMerge(size_t a, size_t b) {
  if (!Plain(fusion_blocks_[a]) || !Plain(fusion_blocks_[b])) return false;
  FusionBlock both = Union(fusion_blocks_[a], fusion_blocks_[b]);
  if (both.nodes.size() > limits_.operators) return false;
  const std::vector<size_t> gone = {std::min(a, b), std::max(a, b)};
  if (Estimate(both) >= 0) return Try(gone, {both}, "merged");
  // As a task they do not fit; perhaps they do with a barrier between them.
  for (const HandOver& edge : InnerHandOvers(graph_, both)) {
    if (!Contains(fusion_blocks_[a].nodes, edge.producer) || !Contains(fusion_blocks_[b].nodes, edge.consumer))
      continue;
    both.inner.push_back({edge.producer, edge.consumer, edge.value, Scope::kDevice, Scope::kDevice});
  }
  std::sort(both.inner.begin(), both.inner.end());
  return Try(gone, {both}, "merged across a barrier");
}

PlanSearch::FusionBlocks PlanSearch::Choose(const std::vector<NodeId>& nodes,
                                            const std::vector<KnownFusionBlock>& candidates) const {
  std::vector<CandidateFusionBlock> all;
  for (const KnownFusionBlock& fusion_block : candidates) {
    CandidateFusionBlock& one = all.emplace_back();
    one.cost = fusion_block.estimate_ns;
    for (const NodeId id : fusion_block.nodes) {
      one.nodes.push_back(static_cast<int>(std::lower_bound(nodes.begin(), nodes.end(), id) - nodes.begin()));
    }
  }
  const absl::StatusOr<FusionBlockChoice> choice =
      ChooseFusionBlocks(static_cast<int>(nodes.size()), Precedence(graph_, nodes), all);
  FusionBlocks fusion_blocks;
  if (choice.ok()) {
    for (const size_t c : choice->chosen) fusion_blocks.emplace_back(candidates[c].nodes);
  }
  return fusion_blocks;
}

absl::StatusOr<bool> PlanSearch::TryChoice(size_t a, size_t b) {
  const FusionBlock both = Union(fusion_blocks_[a], fusion_blocks_[b]);
  if (!Plain(fusion_blocks_[a]) || !Plain(fusion_blocks_[b]) || !both.inner.empty() || !both.directives.empty())
    return false;
  if (both.nodes.size() > limits_.region) return false;
  std::vector<KnownFusionBlock> candidates;
  std::set<std::vector<NodeId>> held;
  const auto add = [&](const std::vector<NodeId>& nodes, double ns) {
    if (ns >= 0 && held.insert(nodes).second) candidates.push_back({nodes, ns});
  };
  for (const FusionBlock& one : {fusion_blocks_[a], fusion_blocks_[b]}) add(one.nodes, Estimate(one));
  for (const NodeId id : both.nodes) add({id}, Estimate(FusionBlock({id})));
  for (const NodeId first : both.nodes) {
    const auto known = known_.find(first);
    if (known == known_.end()) continue;
    for (const KnownFusionBlock& fusion_block : known->second) {
      if (candidates.size() >= kMostCandidateFusionBlocks) break;
      if (std::includes(both.nodes.begin(), both.nodes.end(), fusion_block.nodes.begin(), fusion_block.nodes.end())) {
        add(fusion_block.nodes, fusion_block.estimate_ns);
      }
    }
  }
  if (candidates.size() > kMostCandidateFusionBlocks || candidates.size() == both.nodes.size()) return false;
  const FusionBlocks chosen = Choose(both.nodes, candidates);
  if (chosen.empty() || (chosen.size() == 2 && std::count(chosen.begin(), chosen.end(), fusion_blocks_[a]) == 1))
    return false;
  return Try({std::min(a, b), std::max(a, b)}, chosen, "divided anew");
}

absl::StatusOr<bool> PlanSearch::TrySplits(size_t b) {
  const FusionBlock whole = fusion_blocks_[b];
  if (!Plain(whole)) return false;
  std::vector<std::pair<double, FusionBlocks>> splits;
  for (size_t first = 1; first < whole.nodes.size() && !Spent(); ++first) {
    const auto cut = whole.nodes.begin() + static_cast<std::ptrdiff_t>(first);
    FusionBlocks halves = {Part(whole, {whole.nodes.begin(), cut}), Part(whole, {cut, whole.nodes.end()})};
    const double ns[] = {Estimate(halves[0]), Estimate(halves[1])};
    if (ns[0] >= 0 && ns[1] >= 0) splits.emplace_back(ns[0] + ns[1], std::move(halves));
  }
  std::stable_sort(splits.begin(), splits.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (splits.size() > kSplits) splits.resize(kSplits);
  for (const auto& [ns, halves] : splits) {
    ASSIGN_OR_RETURN(const bool better, Try({b}, halves, "split"));
    if (better) return true;
  }
  return false;
}

absl::Status PlanSearch::Move() {
  for (int round = 0; round < kRounds && !Spent(); ++round) {
    const int64_t before = changes_;
    // Fusion blocks change places with every change that is kept, so that pairs are looked up again by a node of each.
    for (const auto& [producer, consumer] : [&] {
           std::vector<std::pair<NodeId, NodeId>> nodes;
           for (const auto& [a, b] : Neighbours())
             nodes.emplace_back(fusion_blocks_[a].nodes[0], fusion_blocks_[b].nodes[0]);
           return nodes;
         }()) {
      if (Spent()) break;
      const auto place = [&](NodeId node) { return static_cast<size_t>(Owners(fusion_blocks_)[node]); };
      if (place(producer) == place(consumer)) continue;
      ASSIGN_OR_RETURN(const bool merged, TryMerge(place(producer), place(consumer)));
      if (!merged) RETURN_IF_ERROR(TryChoice(place(producer), place(consumer)).status());
    }
    std::vector<NodeId> firsts;
    for (const FusionBlock& fusion_block : fusion_blocks_) firsts.push_back(fusion_block.nodes[0]);
    for (const NodeId first : firsts) {
      if (Spent()) break;
      RETURN_IF_ERROR(TrySplits(static_cast<size_t>(Owners(fusion_blocks_)[first])).status());
    }
    if (changes_ == before) break;
  }
  return absl::OkStatus();
}

absl::Status PlanSearch::Combine(const std::vector<const FusionPlan*>& others) {
  // Nodes that share a fusion block in any of the plans belong together, and with what their fusion blocks recompute.
  std::vector<NodeId> parent(graph_.nodes().size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto of = [&](NodeId id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  const auto join = [&](const FusionBlocks& fusion_blocks) {
    for (const FusionBlock& fusion_block : fusion_blocks) {
      for (const NodeId id : fusion_block.Members())
        parent[std::max(of(id), of(fusion_block.nodes[0]))] = std::min(of(id), of(fusion_block.nodes[0]));
    }
  };
  join(fusion_blocks_);
  for (const FusionPlan* plan : others) join(plan->fusion_blocks);
  std::map<NodeId, std::vector<NodeId>> components;
  for (NodeId id = 0; id < static_cast<int>(parent.size()); ++id) components[of(id)].push_back(id);
  for (const auto& [first, nodes] : components) {
    if (Spent()) break;
    RETURN_IF_ERROR(CombineComponent(nodes, others).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PlanSearch::CombineComponent(const std::vector<NodeId>& nodes,
                                                  const std::vector<const FusionPlan*>& others) {
  bool changed = false;
  std::vector<KnownFusionBlock> candidates;
  std::set<FusionBlock> held;
  const auto add = [&](const FusionBlock& fusion_block) {
    const bool plain = Plain(fusion_block) && fusion_block.inner.empty() && fusion_block.directives.empty();
    if (!held.insert(fusion_block).second || !plain) return;
    if (const double ns = Estimate(fusion_block); ns >= 0) candidates.push_back({fusion_block.nodes, ns});
  };
  const auto gone = [&] {
    std::vector<size_t> places;
    for (size_t b = 0; b < fusion_blocks_.size(); ++b) {
      if (Contains(nodes, fusion_blocks_[b].nodes[0])) places.push_back(b);
    }
    return places;
  };
  for (const size_t b : gone()) add(fusion_blocks_[b]);
  for (const FusionPlan* plan : others) {
    FusionBlocks made;
    bool other = false;
    for (const FusionBlock& fusion_block : plan->fusion_blocks) {
      if (!Contains(nodes, fusion_block.nodes[0])) continue;
      made.push_back(fusion_block);
      other |= held.count(fusion_block) == 0;
      add(fusion_block);
    }
    if (!other) continue;
    ASSIGN_OR_RETURN(const bool better, Try(gone(), made, "as another planner has it"));
    changed |= better;
  }
  if (candidates.size() > kMostCandidateFusionBlocks || held.size() <= gone().size()) return changed;
  const FusionBlocks chosen = Choose(nodes, candidates);
  if (chosen.empty()) return changed;
  ASSIGN_OR_RETURN(const bool better, Try(gone(), chosen, "the best of several planners' kernels"));
  return changed || better;
}

FusionPlan PlanSearch::Plan() const {
  FusionPlan plan;
  plan.fusion_blocks = fusion_blocks_;
  const std::vector<int> owner = Owners(fusion_blocks_);
  std::set<std::pair<NodeId, NodeId>> decided;
  for (const Decision& decision : start_.decisions) {
    if (!decided.emplace(decision.producer, decision.consumer).second) continue;
    plan.decisions.push_back(decision);
  }
  for (const auto& [edge, reason] : reasons_) {
    if (!decided.insert(edge).second) continue;
    Decision& decision = plan.decisions.emplace_back();
    std::tie(decision.producer, decision.consumer) = edge;
  }
  for (Decision& decision : plan.decisions) {
    const bool together = owner[decision.producer] == owner[decision.consumer];
    const auto reason = reasons_.find({decision.producer, decision.consumer});
    if (decision.fused == together && (reason == reasons_.end() || !decision.reason.empty())) continue;
    decision = {decision.producer, decision.consumer, Basis::kLatency, together,
                reason == reasons_.end() ? "other edges decided" : reason->second};
  }
  std::sort(plan.decisions.begin(), plan.decisions.end(), [](const Decision& a, const Decision& b) {
    return std::tie(a.producer, a.consumer) < std::tie(b.producer, b.consumer);
  });
  return plan;
}

}  // namespace fusion
