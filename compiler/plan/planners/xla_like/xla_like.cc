#include "compiler/plan/planners/xla_like/xla_like.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/plan/cover.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;

// A fusion of more operators saves hardly any more memory traffic, and scheduling it takes the square of its size.
constexpr size_t kMostOperators = 64;
// Fusions that may compute a map again. More would spend more on its code than memory traffic costs.
constexpr size_t kMostFusions = 16;

class XlaFusion {
 public:
  XlaFusion(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits, FusionOracle& oracle,
            const PlanOptions& options)
      : graph_(graph),
        traits_(traits),
        oracle_(oracle),
        options_(options),
        root_(graph.nodes().size()),
        fusions_(graph.nodes().size()) {}

  absl::StatusOr<FusionPlan> Run();

 private:
  // Why the node is the root of a fusion, and read by all others from memory; empty if each reader computes it again.
  std::string WhyRoot(NodeId id) const;
  // Does it read at most one computed tensor that is as large as its result?
  bool AtMostUnary(NodeId id) const;
  bool IsRoot(NodeId id) const { return !root_[id].empty(); }
  std::vector<NodeId> Producers(NodeId id) const;
  std::vector<NodeId> Consumers(NodeId id) const;
  // The root and the cheap maps that it computes again, ascending.
  std::vector<NodeId> Fusion(NodeId root);
  absl::StatusOr<FusionBlock> Fitting(FusionBlock fusion_block);
  std::vector<Decision> Decisions() const;
  std::string Name(NodeId id) const { return absl::StrCat(graph_.node(id).op, " '", graph_.node(id).name, "'"); }

  const ecg::Graph& graph_;
  const std::vector<OperatorTraits>& traits_;
  FusionOracle& oracle_;
  const PlanOptions& options_;
  std::vector<std::string> root_;          // by node: WhyRoot, or what made it a root later
  std::vector<std::set<NodeId>> fusions_;  // by node: the roots of the fusions that compute it
};

std::vector<NodeId> XlaFusion::Producers(NodeId id) const {
  std::vector<NodeId> producers;
  for (ecg::ValueId v : graph_.node(id).inputs) {
    if (v != ecg::kNone && graph_.value(v).producer != ecg::kNone) producers.push_back(graph_.value(v).producer);
  }
  return producers;
}

std::string XlaFusion::WhyRoot(NodeId id) const {
  switch (traits_[id].kind) {
    case OperatorKind::kProduct:
      return "a product is a library call";
    case OperatorKind::kWhole:
      return "nothing is known of the operator";
    case OperatorKind::kReduction:
      return "a reduction would be repeated by every reader";
    case OperatorKind::kExpensiveMap:
      return "an expensive operator would be repeated by every reader";
    case OperatorKind::kMap:
      break;
  }
  for (ecg::ValueId v : graph_.node(id).outputs) {
    if (v == ecg::kNone) continue;
    if (graph_.IsOutput(v)) return "the model returns it";
    for (NodeId consumer : graph_.value(v).consumers) {
      const OperatorKind kind = traits_[consumer].kind;
      if (kind == OperatorKind::kProduct || kind == OperatorKind::kWhole) {
        return absl::StrCat(Name(consumer), " reads it from memory");
      }
    }
  }
  const std::vector<NodeId> consumers = Consumers(id);
  if (consumers.empty()) return "nobody reads it";
  std::set<NodeId> fusions;
  for (NodeId consumer : consumers) fusions.insert(fusions_[consumer].begin(), fusions_[consumer].end());
  if (fusions.size() > 1 && !AtMostUnary(id)) {
    return absl::StrCat(fusions.size(), " fusions would read its several operands instead of its result");
  }
  if (fusions.size() > kMostFusions) return absl::StrCat(fusions.size(), " fusions would compute it again");
  return "";
}

std::vector<NodeId> XlaFusion::Consumers(NodeId id) const {
  std::vector<NodeId> consumers;
  for (ecg::ValueId v : graph_.node(id).outputs) {
    if (v == ecg::kNone) continue;
    consumers.insert(consumers.end(), graph_.value(v).consumers.begin(), graph_.value(v).consumers.end());
  }
  return consumers;
}

bool XlaFusion::AtMostUnary(NodeId id) const {
  int64_t result = 0;
  for (ecg::ValueId v : graph_.node(id).outputs) {
    if (v != ecg::kNone) result = std::max(result, NumElements(graph_.value(v).type.shape));
  }
  std::set<ecg::ValueId> large;
  for (ecg::ValueId v : graph_.node(id).inputs) {
    if (v == ecg::kNone || graph_.value(v).constant) continue;
    if (NumElements(graph_.value(v).type.shape) >= result) large.insert(v);
  }
  return large.size() <= 1;
}

std::vector<NodeId> XlaFusion::Fusion(NodeId root) {
  std::set<NodeId> open = {root};
  std::vector<NodeId> members;
  const OperatorKind kind = traits_[root].kind;
  const bool alone = kind == OperatorKind::kProduct || kind == OperatorKind::kWhole;
  // The latest first, so that all readers of a node in the fusion come before it.
  while (!open.empty()) {
    const NodeId id = *open.rbegin();
    open.erase(id);
    if (members.size() == kMostOperators) {
      root_[id] = absl::StrCat("a fusion has at most ", kMostOperators, " operators");
      continue;
    }
    members.push_back(id);
    for (NodeId producer : Producers(id)) {
      if (!alone && !IsRoot(producer)) open.insert(producer);
    }
  }
  std::reverse(members.begin(), members.end());
  return members;
}

// XLA hands over within a thread, by computing again. Where no schedule does that, the value may go through the task's
// scratch.
absl::StatusOr<FusionBlock> XlaFusion::Fitting(FusionBlock fusion_block) {
  fusion_block.inner = InnerHandOvers(graph_, fusion_block);
  for (HandOver& hand_over : fusion_block.inner) hand_over.furthest = Scope::kLane;
  if (oracle_.Fit(graph_, fusion_block).ok()) return fusion_block;
  fusion_block.inner.clear();
  RETURN_IF_ERROR(oracle_.Fit(graph_, fusion_block).status());
  return fusion_block;
}

absl::StatusOr<FusionPlan> XlaFusion::Run() {
  const auto nodes = static_cast<NodeId>(graph_.nodes().size());
  for (NodeId id = nodes; id-- > 0;) {
    root_[id] = WhyRoot(id);
    if (IsRoot(id)) {
      fusions_[id] = {id};
      continue;
    }
    for (NodeId consumer : Consumers(id)) fusions_[id].insert(fusions_[consumer].begin(), fusions_[consumer].end());
  }
  FusionPlan plan;
  // A fusion without a schedule is cut in two. The cut makes further roots, so that all fusions are made again; each
  // round has more roots than the one before.
  for (bool cut = true; cut;) {
    std::vector<std::vector<NodeId>> sets;
    // The latest root first: a fusion that reaches its limit makes roots of earlier nodes only.
    for (NodeId id = nodes; id-- > 0;) {
      if (IsRoot(id)) sets.push_back(Fusion(id));
    }
    // Such a node may be one that another fusion, made before, computes again.
    cut = std::any_of(sets.begin(), sets.end(), [&](const std::vector<NodeId>& set) {
      return std::any_of(set.begin(), set.end() - 1, [&](NodeId id) { return IsRoot(id); });
    });
    if (cut) continue;
    ASSIGN_OR_RETURN(plan.fusion_blocks, FusionBlocksOfCover(graph_, sets));
    int64_t done = 0;
    for (FusionBlock& fusion_block : plan.fusion_blocks) {
      if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
      done += static_cast<int64_t>(fusion_block.nodes.size());
      if (options_.progress) options_.progress(done, nodes);
      const std::vector<NodeId> members = fusion_block.Members();
      if (members.size() == 1) continue;
      absl::StatusOr<FusionBlock> fitting = Fitting(fusion_block);
      if (fitting.ok()) {
        fusion_block = *std::move(fitting);
        continue;
      }
      cut = true;
      // The half that is nearer to the root stays.
      const std::vector<NodeId> near(members.begin() + static_cast<std::ptrdiff_t>(members.size() / 2), members.end());
      for (NodeId id : near) {
        for (NodeId producer : Producers(id)) {
          if (IsRoot(producer) || std::binary_search(near.begin(), near.end(), producer)) continue;
          root_[producer] =
              absl::StrCat("it cannot be one kernel with ", Name(members.back()), ": ", fitting.status().message());
        }
      }
    }
  }
  plan.decisions = Decisions();
  return plan;
}

std::vector<Decision> XlaFusion::Decisions() const {
  std::vector<Decision> decisions;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
    std::vector<NodeId> producers = Producers(id);
    std::sort(producers.begin(), producers.end());
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    for (NodeId producer : producers) {
      Decision& decision = decisions.emplace_back();
      decision.producer = producer;
      decision.consumer = id;
      decision.fused = !IsRoot(producer);
      decision.reason = decision.fused ? "a cheap map that every reader computes again" : root_[producer];
    }
  }
  return decisions;
}

class XlaLike : public Planner {
 public:
  const char* name() const override { return "xla_like"; }
  bool WantsOpened() const override { return true; }
  absl::StatusOr<FusionPlan> Plan(const ecg::Graph& graph, const DeviceModel&, FusionOracle& oracle,
                                  const PlanOptions& options) const override {
    return FuseLikeXla(graph, TraitsOf(graph), oracle, options);
  }
};

}  // namespace

absl::StatusOr<FusionPlan> FuseLikeXla(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits,
                                       FusionOracle& oracle, const PlanOptions& options) {
  return XlaFusion(graph, traits, oracle, options).Run();
}

const Planner* XlaLikePlanner() {
  static const auto* const kPlanner = new XlaLike;
  return kPlanner;
}

}  // namespace fusion
