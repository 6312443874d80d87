#include "compiler/plan/planners/auto/choose_fusion_blocks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

using Set = uint64_t;  // of candidates
static_assert(kMostCandidateFusionBlocks <= 64);

class Search {
 public:
  Search(int nodes, const std::vector<std::pair<int, int>>& edges, const std::vector<CandidateFusionBlock>& candidates)
      : edges_(edges),
        candidates_(candidates),
        holding_(nodes, 0),
        conflicts_(candidates.size(), 0),
        owner_(nodes, -1) {
    for (size_t c = 0; c < candidates.size(); ++c) {
      for (const int node : candidates[c].nodes) holding_[node] |= Set{1} << c;
    }
    for (const Set holding : holding_) {
      for (size_t c = 0; c < candidates.size(); ++c) {
        if (holding >> c & 1) conflicts_[c] |= holding;
      }
    }
  }

  FusionBlockChoice Run() {
    best_.cost = std::numeric_limits<double>::infinity();
    const Set all = candidates_.size() == 64 ? ~Set{0} : (Set{1} << candidates_.size()) - 1;
    Extend(all, 0);
    std::sort(best_.chosen.begin(), best_.chosen.end());
    return best_;
  }

 private:
  // The least that the nodes without an owner can cost: each takes its share of the cheapest candidate that is left.
  double LeastRest(Set allowed) const {
    double rest = 0;
    for (size_t node = 0; node < owner_.size(); ++node) {
      if (owner_[node] >= 0) continue;
      double least = std::numeric_limits<double>::infinity();
      for (Set left = holding_[node] & allowed; left != 0; left &= left - 1) {
        const CandidateFusionBlock& one = candidates_[std::countr_zero(left)];
        least = std::min(least, one.cost / static_cast<double>(one.nodes.size()));
      }
      rest += least;
    }
    return rest;
  }

  // Does none of the chosen candidates wait for itself? Nodes without an owner count as candidates of their own: what
  // will own them can only wait for more.
  bool Acyclic() const {
    const int nodes = static_cast<int>(owner_.size());
    const auto vertex = [&](int node) { return owner_[node] >= 0 ? nodes + owner_[node] : node; };
    const int vertices = nodes + static_cast<int>(candidates_.size());
    std::vector<std::vector<int>> after(vertices);
    std::vector<int> waits(vertices, 0);
    for (const auto& [from, to] : edges_) {
      if (vertex(from) == vertex(to)) continue;
      after[vertex(from)].push_back(vertex(to));
      ++waits[vertex(to)];
    }
    std::vector<int> ready;
    for (int v = 0; v < vertices; ++v) {
      if (waits[v] == 0) ready.push_back(v);
    }
    int done = 0;
    while (!ready.empty()) {
      const int v = ready.back();
      ready.pop_back();
      ++done;
      for (const int next : after[v]) {
        if (--waits[next] == 0) ready.push_back(next);
      }
    }
    return done == vertices;
  }

  void Extend(Set allowed, double cost) {
    if (++best_.looked_at > kMostPartialChoices) {
      best_.exact = false;
      return;
    }
    // A later choice must be better by more than rounding, so that the first of equal ones stays.
    if (cost + LeastRest(allowed) >= best_.cost * (1 - 1e-12)) return;
    int open = -1;
    for (int node = 0; node < static_cast<int>(owner_.size()); ++node) {
      if (owner_[node] >= 0) continue;
      const auto left = [&](int n) { return std::popcount(holding_[n] & allowed); };
      if (open < 0 || left(node) < left(open)) open = node;
    }
    if (open < 0) {
      best_.cost = cost;
      best_.chosen = chosen_;
      return;
    }
    for (Set left = holding_[open] & allowed; left != 0 && best_.exact; left &= left - 1) {
      const int c = std::countr_zero(left);
      for (const int node : candidates_[c].nodes) owner_[node] = c;
      chosen_.push_back(static_cast<size_t>(c));
      if (Acyclic()) Extend(allowed & ~conflicts_[c], cost + candidates_[c].cost);
      chosen_.pop_back();
      for (const int node : candidates_[c].nodes) owner_[node] = -1;
    }
  }

  const std::vector<std::pair<int, int>>& edges_;
  const std::vector<CandidateFusionBlock>& candidates_;
  std::vector<Set> holding_;    // by node: the candidates that hold it
  std::vector<Set> conflicts_;  // by candidate: those that share a node with it, itself included
  std::vector<int> owner_;      // by node: the chosen candidate that holds it, or -1
  std::vector<size_t> chosen_;
  FusionBlockChoice best_;
};

}  // namespace

absl::StatusOr<FusionBlockChoice> ChooseFusionBlocks(int nodes, const std::vector<std::pair<int, int>>& edges,
                                                     const std::vector<CandidateFusionBlock>& candidates) {
  if (candidates.size() > kMostCandidateFusionBlocks) {
    return absl::ResourceExhaustedError(absl::StrCat(candidates.size(), " fusion blocks compete for ", nodes,
                                                     " nodes, and ", kMostCandidateFusionBlocks, " is the limit"));
  }
  for (const CandidateFusionBlock& one : candidates) {
    const bool inside =
        !one.nodes.empty() && one.nodes.front() >= 0 && one.nodes.back() < nodes &&
        std::adjacent_find(one.nodes.begin(), one.nodes.end(), std::greater_equal<>()) == one.nodes.end();
    if (!inside || !(one.cost >= 0)) {
      return absl::InvalidArgumentError("a candidate needs ascending nodes of the region and a cost of at least 0");
    }
  }
  for (const auto& [from, to] : edges) {
    if (from < 0 || to < 0 || from >= nodes || to >= nodes) {
      return absl::InvalidArgumentError("an edge leaves the region");
    }
  }
  FusionBlockChoice best = Search(nodes, edges, candidates).Run();
  if (best.cost == std::numeric_limits<double>::infinity()) {
    return absl::NotFoundError("no candidates hold every node once without waiting for each other");
  }
  return best;
}

}  // namespace fusion
