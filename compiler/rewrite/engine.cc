#include "compiler/rewrite/engine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/rewrite/draft.h"
#include "compiler/rewrite/match.h"
#include "compiler/rewrite/partition.h"
#include "compiler/rewrite/ranges.h"
#include "compiler/rewrite/rule_index.h"
#include "compiler/rewrite/work_graph.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

constexpr int kMaxMatches = 64;        // per rule and root, of which the best is chosen
constexpr int kMaxRounds = 8;          // of composite and other rules in turn
constexpr int kReach = 6;              // how far below a change the root of an affected pattern may stand
constexpr size_t kMaxDisturbed = 256;  // limit of nodes considered again after a change; later sweeps find the rest

struct Candidate {
  const Rule* rule;
  Draft draft;
  Cost saving;
  Rank rank;
};

class Engine {
 public:
  Engine(const ecg::Graph& source, const std::vector<const Rule*>& rules, MathLevel math, Measure measure)
      : graph_(source),
        ranges_(graph_),
        math_(math),
        measure_(measure),
        pattern_ops_(OpsOf(rules)),
        rules_(rules),
        budget_(16 * graph_.num_nodes() + 64) {}

  absl::StatusOr<Result> Run() {
    for (std::vector<ecg::NodeId>& partition : Partition(graph_, pattern_ops_)) {
      members_ = std::move(partition);
      // A sweep considers all members; WorkOff then applies what it found, best first. Sweeps repeat until one finds
      // nothing.
      while (Sweep()) RETURN_IF_ERROR(WorkOff());
    }
    return Result{graph_.Finish(), std::move(firings_), match_steps_, drafts_};
  }

 private:
  // The largest saving first, then graph order.
  struct Key {
    Rank rank;
    int order;
    ecg::NodeId root;
    bool operator<(const Key& other) const {
      return rank != other.rank ? other.rank < rank : std::tie(order, root) < std::tie(other.order, other.root);
    }
  };

  bool Sweep() {
    for (ecg::NodeId id : members_) Consider(id);
    return !queue_.empty();
  }

  void Forget(ecg::NodeId root) {
    const auto it = ranks_.find(root);
    if (it == ranks_.end()) return;
    queue_.erase({it->second, graph_.Order(root), root});
    ranks_.erase(it);
  }

  void Consider(ecg::NodeId root) {
    Forget(root);
    const std::optional<Candidate> best = Best(root);
    if (!best.has_value()) return;
    ranks_[root] = best->rank;
    queue_.insert({best->rank, graph_.Order(root), root});
  }

  std::optional<Candidate> Best(ecg::NodeId root) {
    std::optional<Candidate> best;
    if (!graph_.IsAlive(root)) return best;
    const ecg::Node& node = graph_.node(root);
    if (node.outputs.size() != 1 || graph_.IsKnown(node.outputs[0])) return best;
    // Operands grouped as in the graph come first, because a match that regroups them demands more.
    const bool as_grouped = math_ != MathLevel::kRelaxed, regrouped = math_ != MathLevel::kStrict;
    for (const Rule* rule : rules_.Possible(graph_, node)) {
      if (as_grouped) Improve(*rule, root, /*reassociate=*/false, &best);
      if (regrouped) Improve(*rule, root, /*reassociate=*/true, &best);
    }
    return best;
  }

  void Improve(const Rule& rule, ecg::NodeId root, bool reassociate, std::optional<Candidate>* best) {
    int matches = 0;
    match_steps_ += FindMatches(graph_, rule, root, reassociate, [&](const Match& match) {
      ++drafts_;
      absl::StatusOr<Draft> draft = Draft::Make(graph_, rule, match, &ranges_);
      if (draft.ok()) {
        const Cost saving = draft->Saving();
        const Rank rank = RankOf(saving, measure_);
        if (rank > Rank{} && (!best->has_value() || (*best)->rank < rank) &&
            (math_ == MathLevel::kRelaxed || draft->MeetsDemands(rule, match, &ranges_))) {
          *best = Candidate{&rule, *std::move(draft), saving, rank};
        }
      }
      return ++matches < kMaxMatches;
    });
  }

  absl::Status WorkOff() {
    while (!queue_.empty()) {
      const Key key = *queue_.begin();
      Forget(key.root);
      // The graph may have changed since the node was queued.
      std::optional<Candidate> best = Best(key.root);
      if (!best.has_value()) continue;
      if (best->rank < key.rank) {
        ranks_[key.root] = best->rank;
        queue_.insert({best->rank, key.order, key.root});
        continue;
      }
      if (static_cast<int>(firings_.size()) >= budget_) {
        return absl::InternalError(absl::StrCat("rewriting does not end: rule '", best->rule->id, "' fires again"));
      }
      Apply(key.root, *best);
    }
    return absl::OkStatus();
  }

  void Apply(ecg::NodeId root, const Candidate& candidate) {
    const ecg::Node& node = graph_.node(root);
    const std::string& name = node.name.empty() ? graph_.value(node.outputs[0]).name : node.name;
    const Cost& saving = candidate.saving;
    firings_.push_back({candidate.rule->id, absl::StrCat(node.op, " '", name, "'"), saving.flops, saving.bytes,
                        static_cast<int64_t>(saving.nodes)});
    std::set<ecg::NodeId> disturbed;
    for (ecg::ValueId input : node.inputs) Disturb(input, &disturbed);
    const ecg::NodeId first_new = graph_.num_nodes();
    const ecg::ValueId result = candidate.draft.Commit(&graph_);
    for (ecg::NodeId id = first_new; id < graph_.num_nodes(); ++id) {
      members_.push_back(id);
      disturbed.insert(id);
      for (ecg::ValueId input : graph_.node(id).inputs) Disturb(input, &disturbed);
    }
    Disturb(result, &disturbed);
    for (ecg::NodeId id : disturbed) Consider(id);
  }

  // Adds the nodes whose patterns may reach `value`: those at most kReach below it.
  void Disturb(ecg::ValueId value, std::set<ecg::NodeId>* disturbed) const {
    if (value == ecg::kNone) return;
    std::vector<ecg::ValueId> level{value};
    for (int depth = 0; depth < kReach && !level.empty(); ++depth) {
      std::vector<ecg::ValueId> next;
      for (ecg::ValueId id : level) {
        for (ecg::NodeId consumer : graph_.value(id).consumers) {
          if (disturbed->size() >= kMaxDisturbed) return;
          if (!disturbed->insert(consumer).second || pattern_ops_.count(graph_.node(consumer).op) == 0) continue;
          for (ecg::ValueId output : graph_.node(consumer).outputs) next.push_back(output);
        }
      }
      level = std::move(next);
    }
  }

  WorkGraph graph_;
  Ranges ranges_;
  const MathLevel math_;
  const Measure measure_;
  const std::set<std::string> pattern_ops_;
  const RuleIndex rules_;
  std::vector<ecg::NodeId> members_;  // of the partition in work
  std::set<Key> queue_;
  std::map<ecg::NodeId, Rank> ranks_;  // of the queued nodes
  std::vector<Firing> firings_;
  const int budget_;
  int64_t match_steps_ = 0, drafts_ = 0;
};

// Returns the Levenshtein distance.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
    }
  }
  return row[b.size()];
}

bool Allows(MathLevel math, MathClass math_class) {
  if (math_class == MathClass::kExact) return true;
  return math_class == MathClass::kReassociates ? math != MathLevel::kStrict : math == MathLevel::kRelaxed;
}

}  // namespace

absl::Status CheckRuleIdIn(const std::vector<Rule>& rules, const std::string& id) {
  if (std::any_of(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.id == id; })) return absl::OkStatus();
  std::vector<std::pair<size_t, std::string>> near;
  for (const Rule& rule : rules) near.emplace_back(Distance(id, rule.id), rule.id);
  std::sort(near.begin(), near.end());
  near.resize(std::min<size_t>(near.size(), 3));
  return absl::NotFoundError(absl::StrCat(
      "no rewrite rule is called '", id,
      "'; nearest: ", absl::StrJoin(near, ", ", [](std::string* out, const auto& entry) { *out += entry.second; })));
}

absl::StatusOr<Result> RewriteWith(const ecg::Graph& graph, const std::vector<Rule>& rules, const Options& options) {
  for (const std::string& id : options.disabled) RETURN_IF_ERROR(CheckRuleIdIn(rules, id));
  // Composite rules come first, because others would take their patterns apart.
  std::vector<const Rule*> composites, plain;
  for (const Rule& rule : rules) {
    if (options.disabled.count(rule.id) != 0 || !Allows(options.math, rule.math_class)) continue;
    (rule.composite ? composites : plain).push_back(&rule);
  }
  Result result{graph, {}};
  const auto apply = [&](const std::vector<const Rule*>& some, Measure measure) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(Result next, Engine(result.graph, some, options.math, measure).Run());
    result.graph = std::move(next.graph);
    result.firings.insert(result.firings.end(), next.firings.begin(), next.firings.end());
    result.match_steps += next.match_steps;
    result.drafts += next.drafts;
    return !next.firings.empty();
  };
  RETURN_IF_ERROR(apply(composites, Measure::kNodes).status());
  // Each kind of rules may recognise what the other made. Each lowers only its own measure, so their alternation needs
  // a bound.
  for (int round = 0; round < kMaxRounds; ++round) {
    ASSIGN_OR_RETURN(const bool changed, apply(plain, Measure::kFlops));
    if (!changed) break;
    ASSIGN_OR_RETURN(const bool recognised, apply(composites, Measure::kNodes));
    if (!recognised) break;
  }
  RETURN_IF_ERROR(Annotate(ecg::Verify(result.graph), "after rewriting"));
  return result;
}

}  // namespace fusion::rewrite
