#include "compiler/plan/planners/fusion_stitching/stitcher.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/plan/cover.h"
#include "runtime/base/status_macros.h"

namespace fusion {

using ecg::NodeId;

namespace {

// Expensive maps that are tried as sub-roots one by one; more are tried together only.
constexpr size_t kFewExpensive = 3;

// Do hand-overs connect all nodes of the fusion block?
bool Connected(const ecg::Graph& graph, const FusionBlock& fusion_block) {
  const std::vector<NodeId> members = fusion_block.Members();
  const std::vector<HandOver> edges = InnerHandOvers(graph, fusion_block);
  std::set<NodeId> reached = {members[0]};
  for (size_t before = 0; before < reached.size();) {
    before = reached.size();
    for (const HandOver& edge : edges) {
      if (reached.count(edge.producer) == reached.count(edge.consumer)) continue;
      reached.insert(edge.producer);
      reached.insert(edge.consumer);
    }
  }
  return reached.size() == members.size();
}

}  // namespace

FusionBlock Stitcher::FusionBlockOf(const Pattern& pattern) const {
  FusionBlock fusion_block(kernels_.Nodes(pattern));
  const auto inside = [&](int v) { return std::binary_search(pattern.begin(), pattern.end(), v); };
  std::set<ecg::ValueId> stored;  // that vertices outside read
  for (int v : pattern) {
    for (const StoredValue& value : kernels_[v].stores) {
      if (!std::all_of(value.readers.begin(), value.readers.end(), inside)) stored.insert(value.value);
    }
  }
  for (NodeId id : fusion_block.nodes) {
    for (ecg::ValueId v : graph_.node(id).outputs) {
      if (v == ecg::kNone || graph_.IsOutput(v)) continue;
      const std::vector<NodeId>& readers = graph_.value(v).consumers;
      const bool all_members = std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
        return std::binary_search(fusion_block.nodes.begin(), fusion_block.nodes.end(), reader);
      });
      if (all_members && stored.count(v) > 0) fusion_block.kept.push_back(v);
      if (!all_members && stored.count(v) == 0) fusion_block.unread.push_back(v);
    }
  }
  std::sort(fusion_block.unread.begin(), fusion_block.unread.end());
  std::sort(fusion_block.kept.begin(), fusion_block.kept.end());
  return fusion_block;
}

// Fits the fusion block as stages of one task: "we do not stitch ops that involve inter-block communications" (§4.1).
// Where the schedule refuses, every hand-over is named at the scopes that it has: the schedule then accepts fewer tasks
// than the device has units, and the estimate says what idle units cost. Where it refuses that, too, stages that hand
// nothing to each other may have tasks of their own in one launch, if the device can do that (kernel packing).
absl::StatusOr<FusionBlockAccount> Stitcher::FitOneTask(FusionBlock* fusion_block) const {
  absl::Status refusal;
  fusion_block->directives.clear();
  for (const int attempt : {0, 1, 2}) {
    if (attempt == 1) fusion_block->inner = InnerHandOvers(graph_, *fusion_block);
    if (attempt == 2) {
      if (Connected(graph_, *fusion_block)) break;
      fusion_block->directives = {{ecg::kNone, "form", "beside"}};
    }
    absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, *fusion_block);
    if (fit.ok() && fit->phases == 1) return fit;
    if (!refusal.ok()) continue;
    refusal = !fit.ok() ? fit.status()
                        : absl::FailedPreconditionError(
                              absl::StrCat("it would need ", fit->phases - 1, " barriers of the device inside"));
  }
  return refusal;
}

// Sub-roots are the outputs of groups that have a schedule of their own (§4.2). Reductions always are: no schedule
// computes one again for its readers. Expensive maps are tried as sub-roots, which keeps them in the task's scratch,
// and as parts of their readers' groups.
absl::StatusOr<Stitched> Stitcher::FastestGrouping(const Pattern& pattern, FusionBlock fusion_block) const {
  Stitched best;
  best.pattern = pattern;
  for (int v : pattern) best.apart_ns += kernels_[v].estimate_ns;
  const std::vector<HandOver> edges = InnerHandOvers(graph_, fusion_block);
  std::vector<NodeId> expensive;
  for (const HandOver& edge : edges) {
    if (traits_[edge.producer].kind == OperatorKind::kExpensiveMap) expensive.push_back(edge.producer);
  }
  std::sort(expensive.begin(), expensive.end());
  expensive.erase(std::unique(expensive.begin(), expensive.end()), expensive.end());
  std::vector<std::vector<NodeId>> groupings = {{}};
  if (!expensive.empty()) groupings.push_back(expensive);
  if (expensive.size() > 1 && expensive.size() <= kFewExpensive) {
    for (NodeId id : expensive) groupings.push_back({id});
  }
  absl::Status refusal;
  bool fits = false;
  for (const std::vector<NodeId>& roots : groupings) {
    fusion_block.inner.clear();
    for (const HandOver& edge : edges) {
      if (!std::binary_search(roots.begin(), roots.end(), edge.producer)) continue;
      fusion_block.inner.push_back(edge);
      fusion_block.inner.back().nearest = Scope::kBlock;
    }
    const absl::StatusOr<FusionBlockAccount> fit = FitOneTask(&fusion_block);
    if (!fit.ok()) {
      if (refusal.ok()) refusal = fit.status();
      continue;
    }
    if (fits && fit->estimate_ns >= best.fused_ns) continue;
    fits = true;
    best.fused_ns = fit->estimate_ns;
    best.inner = fusion_block.inner;
    best.directives = fusion_block.directives;
  }
  if (!fits) return refusal;
  return best;
}

std::optional<std::pair<Pattern, Pattern>> Stitcher::Cut(const Pattern& pattern) const {
  std::optional<std::pair<Pattern, Pattern>> best;
  double most = 0;
  for (size_t at = 1; at < pattern.size(); ++at) {
    const auto middle = pattern.begin() + static_cast<std::ptrdiff_t>(at);
    Pattern first(pattern.begin(), middle), second(middle, pattern.end());
    const std::optional<Delta> a = evaluator_.Evaluate(first), b = evaluator_.Evaluate(second);
    if (!a || !b) continue;
    const double score = a->Score() + b->Score();
    if (best && score <= most) continue;
    most = score;
    best = {std::move(first), std::move(second)};
  }
  return best;
}

// The cost model sees what is handed over through memory only where memory is the limit.
double Stitcher::SavedNs(const Stitched& stitched) const {
  const std::optional<Delta> delta = evaluator_.Evaluate(stitched.pattern);
  return stitched.apart_ns + (delta ? delta->reduced_mem : 0) - stitched.fused_ns;
}

absl::StatusOr<Settled> Stitcher::Settle(const Pattern& pattern) {
  Settled settled;
  if (pattern.size() < 2) return settled;
  if (const auto known = settled_.find(pattern); known != settled_.end()) return known->second;
  RETURN_IF_ERROR(Cancelled());
  absl::StatusOr<Stitched> whole = FastestGrouping(pattern, FusionBlockOf(pattern));
  if (const double saved = whole.ok() ? SavedNs(*whole) : -1; saved >= 0) {
    settled.saved_ns = saved;
    settled.kernels.push_back(*std::move(whole));
  } else {
    refused_[pattern] = whole.ok() ? absl::StrFormat("estimated %.1f us fused against %.1f us apart",
                                                     whole->fused_ns / 1e3, whole->apart_ns / 1e3)
                                   : std::string(whole.status().message());
    if (const auto cut = Cut(pattern)) {
      for (const Pattern& part : {cut->first, cut->second}) {
        ASSIGN_OR_RETURN(Settled of_part, Settle(part));
        settled.saved_ns += of_part.saved_ns;
        std::move(of_part.kernels.begin(), of_part.kernels.end(), std::back_inserter(settled.kernels));
      }
    }
  }
  return settled_[pattern] = std::move(settled);
}

absl::StatusOr<std::vector<Stitched>> Stitcher::Best(const std::vector<std::vector<Pattern>>& plans) {
  std::vector<Stitched> best;
  double most = 0;
  for (const std::vector<Pattern>& plan : plans) {
    std::vector<Stitched> kernels;
    double saved = 0;
    for (const Pattern& pattern : plan) {
      ASSIGN_OR_RETURN(Settled settled, Settle(pattern));
      saved += settled.saved_ns;
      std::move(settled.kernels.begin(), settled.kernels.end(), std::back_inserter(kernels));
    }
    if (saved <= most) continue;
    most = saved;
    best = std::move(kernels);
  }
  return best;
}

FusionComparison Stitcher::Ways(const Stitched& stitched) const {
  FusionComparison ways;
  ways.ways.resize(2);
  ways.ways[0].push_back(FusionBlockOf(stitched.pattern));
  ways.ways[0][0].inner = stitched.inner;
  ways.ways[0][0].directives = stitched.directives;
  for (int v : stitched.pattern) ways.ways[1].push_back(xla_.fusion_blocks[v]);
  return ways;
}

absl::Status Stitcher::Confirm(std::vector<Stitched>* chosen) {
  std::vector<FusionComparison> questions;
  std::vector<size_t> asked;
  for (size_t k = 0; k < chosen->size(); ++k) {
    const Stitched& one = (*chosen)[k];
    const double longer = std::max(one.fused_ns, one.apart_ns), shorter = std::min(one.fused_ns, one.apart_ns);
    if (longer < options_.negligible_ns) continue;
    FusionComparison ways = Ways(one);
    if (longer > options_.trusted_factor * shorter) {
      ASSIGN_OR_RETURN(const bool known, oracle_.Knows(graph_, ways));
      if (!known) continue;
    }
    questions.push_back(std::move(ways));
    asked.push_back(k);
  }
  if (questions.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Cancelled());
  ASSIGN_OR_RETURN(const FusionAnswers answers, oracle_.Compare(graph_, questions, {}));
  if (answers.asked.size() != questions.size()) {
    return absl::InternalError(absl::StrCat(answers.asked.size(), " answers to ", questions.size(), " questions"));
  }
  for (size_t q = questions.size(); q-- > 0;) {
    Stitched& one = (*chosen)[asked[q]];
    const LatencyAnswer &fused = answers.asked[q].at(0), &apart = answers.asked[q].at(1);
    one.source = std::max(fused.source, apart.source);  // the less certain of the two
    const bool measured = IsMeasured(one.source);
    if (measured) one.fused_ns = fused.latency_ns, one.apart_ns = apart.latency_ns;
    const bool slower = measured && fused.latency_ns > apart.latency_ns;
    // A kernel that crashed in the measurement would crash in the bundle.
    if (!slower && one.source != LatencySource::kFailed) continue;
    refused_[one.pattern] = slower
                                ? absl::StrFormat("measured %.1f us fused against %.1f us apart (%s)",
                                                  one.fused_ns / 1e3, one.apart_ns / 1e3, LatencySourceName(one.source))
                                : "a kernel failed when it was measured";
    chosen->erase(chosen->begin() + static_cast<std::ptrdiff_t>(asked[q]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FusionBlock>> Stitcher::Cover(const std::vector<Stitched>& chosen) const {
  std::vector<bool> stitched(static_cast<size_t>(kernels_.size()), false);
  std::vector<std::vector<NodeId>> sets;
  std::map<std::vector<NodeId>, std::vector<HandOver>> asked;  // by members
  std::map<std::vector<NodeId>, std::vector<Directive>> directed;
  for (const Stitched& one : chosen) {
    for (int v : one.pattern) stitched[static_cast<size_t>(v)] = true;
    sets.push_back(kernels_.Nodes(one.pattern));
    asked[sets.back()] = one.inner;
    directed[sets.back()] = one.directives;
  }
  for (int v = 0; v < kernels_.size(); ++v) {
    if (stitched[static_cast<size_t>(v)]) continue;
    sets.push_back(kernels_[v].members);
    asked[sets.back()] = xla_.fusion_blocks[v].inner;
  }
  ASSIGN_OR_RETURN(std::vector<FusionBlock> fusion_blocks, FusionBlocksOfCover(graph_, sets));
  for (FusionBlock& fusion_block : fusion_blocks) {
    fusion_block.inner = asked[fusion_block.Members()];
    fusion_block.directives = directed[fusion_block.Members()];
  }
  return fusion_blocks;
}

absl::Status Stitcher::FitTogether(std::vector<Stitched>* chosen) {
  for (bool changed = true; changed;) {  // each change leaves a kernel out
    changed = false;
    RETURN_IF_ERROR(Cancelled());
    ASSIGN_OR_RETURN(const std::vector<FusionBlock> fusion_blocks, Cover(*chosen));
    std::map<std::vector<NodeId>, const FusionBlock*> by_members;
    for (const FusionBlock& fusion_block : fusion_blocks) by_members[fusion_block.Members()] = &fusion_block;
    for (auto one = chosen->begin(); one != chosen->end();) {
      FusionBlock fusion_block = *by_members.at(kernels_.Nodes(one->pattern));
      const absl::StatusOr<FusionBlockAccount> fit = oracle_.Fit(graph_, fusion_block);
      if (fit.ok() && fit->phases == 1) {
        ++one;
        continue;
      }
      fusion_block.inner.clear();
      fusion_block.directives.clear();
      const absl::StatusOr<Stitched> anew = FastestGrouping(one->pattern, std::move(fusion_block));
      if (anew.ok() && SavedNs(*anew) >= 0) {
        *one++ = *anew;
        continue;
      }
      refused_[one->pattern] =
          anew.ok() ? "slower where another kernel owns what both compute" : std::string(anew.status().message());
      one = chosen->erase(one);
      changed = true;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<FusionPlan> Stitcher::Finish(const std::vector<Stitched>& chosen) const {
  FusionPlan plan;
  ASSIGN_OR_RETURN(plan.fusion_blocks, Cover(chosen));
  std::vector<int> kernel_of(kernels_.size(), -1);
  for (size_t k = 0; k < chosen.size(); ++k) {
    for (int v : chosen[k].pattern) kernel_of[v] = static_cast<int>(k);
  }

  std::vector<int> stored_by(graph_.nodes().size(), -1);  // by node: the vertex of which it is a root
  for (int v = 0; v < kernels_.size(); ++v) {
    for (const StoredValue& stored : kernels_[v].stores) stored_by[graph_.value(stored.value).producer] = v;
  }
  std::map<std::pair<int, int>, const std::string*> cut;  // why a pattern with both vertices is no kernel
  for (const auto& [pattern, why] : refused_) {
    for (int v : pattern) {
      for (int consumer : kernels_[v].consumers) {
        if (std::binary_search(pattern.begin(), pattern.end(), consumer)) cut[{v, consumer}] = &why;
      }
    }
  }
  for (const Decision& decision : xla_.decisions) {
    Decision& made = plan.decisions.emplace_back(decision);
    const int from = stored_by[made.producer];
    if (made.fused || from < 0) continue;
    // The reader may be in several kernels; the first one that reads the value speaks for all.
    int to = -1;
    for (int consumer : kernels_[from].consumers) {
      const std::vector<NodeId>& members = kernels_[consumer].members;
      if (!std::binary_search(members.begin(), members.end(), made.consumer)) continue;
      if (to < 0 || (kernel_of[from] >= 0 && kernel_of[consumer] == kernel_of[from])) to = consumer;
    }
    if (to < 0) continue;
    if (kernel_of[from] >= 0 && kernel_of[from] == kernel_of[to]) {
      const Stitched& stitched = chosen[static_cast<size_t>(kernel_of[from])];
      made.basis = Basis::kLatency;
      made.fused = true;
      made.fused_ns = stitched.fused_ns;
      made.separate_ns = stitched.apart_ns;
      made.source = stitched.source;
      made.reason = absl::StrFormat("%s %.1f us stitched against %.1f us in %d kernels",
                                    IsMeasured(made.source) ? "measured" : "estimated", made.fused_ns / 1e3,
                                    made.separate_ns / 1e3, stitched.pattern.size());
      continue;
    }
    if (!kernels_[from].memory_intensive || !kernels_[to].memory_intensive) {
      made.reason = "only memory-intensive operators are stitched";
    } else if (const auto why = cut.find({from, to}); why != cut.end()) {
      made.reason = *why->second;
    } else {
      made.reason = "no chosen pattern has both";
    }
  }
  return plan;
}

}  // namespace fusion
