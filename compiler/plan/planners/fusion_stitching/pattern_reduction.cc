#include "compiler/plan/planners/fusion_stitching/pattern_reduction.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Consumers whose patterns are combined exhaustively: (3 + 1)² - 1 combinations, as in the paper's example.
constexpr size_t kSmallGroup = 2;

bool Better(const ScoredPattern& a, const ScoredPattern& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.vertices.size() != b.vertices.size()) return a.vertices.size() < b.vertices.size();
  return a.vertices < b.vertices;
}

Pattern Union(const Pattern& a, const Pattern& b) {
  Pattern both;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

class Reduction {
 public:
  Reduction(const KernelGraph& graph, const DeltaEvaluator& evaluator, const std::function<bool()>& cancelled)
      : graph_(graph), evaluator_(evaluator), cancelled_(cancelled), candidates_(graph.size()) {}

  absl::StatusOr<std::vector<std::vector<ScoredPattern>>> Run() {
    // Post-order: consumers before producers.
    for (int v = graph_.size() - 1; v >= 0; --v) {
      RETURN_IF_ERROR(Cancelled());
      if (!graph_[v].memory_intensive) continue;
      std::vector<int> consumers;
      for (int consumer : graph_[v].consumers) {
        if (graph_[consumer].memory_intensive) consumers.push_back(consumer);
      }
      std::vector<ScoredPattern> found = OfGroup(consumers, 0, consumers.size(), {v});
      found.push_back({{v}, 0});
      candidates_[v] = Top(std::move(found));
    }
    std::vector<std::vector<ScoredPattern>> result = candidates_;
    RETURN_IF_ERROR(Remote(&result));
    for (std::vector<ScoredPattern>& patterns : result) {
      patterns.erase(std::remove_if(patterns.begin(), patterns.end(),
                                    [](const ScoredPattern& p) { return p.vertices.size() < 2 || p.score <= 0; }),
                     patterns.end());
      std::sort(patterns.begin(), patterns.end(), Better);
    }
    return result;
  }

 private:
  absl::Status Cancelled() const {
    return cancelled_ && cancelled_() ? absl::CancelledError("planning was cancelled") : absl::OkStatus();
  }

  // Each pattern once, and of those the best few.
  static std::vector<ScoredPattern> Top(std::vector<ScoredPattern> patterns) {
    std::sort(patterns.begin(), patterns.end(), Better);
    patterns.erase(std::unique(patterns.begin(), patterns.end(),
                               [](const ScoredPattern& a, const ScoredPattern& b) { return a.vertices == b.vertices; }),
                   patterns.end());
    if (patterns.size() > kTopPatterns) patterns.resize(kTopPatterns);
    return patterns;
  }

  // A pattern that a path leaves and enters again is no candidate, but it is one with the vertices on the path.
  void Add(const Pattern& open, std::vector<ScoredPattern>* patterns) const {
    Pattern pattern = graph_.Closure(open);
    if (const std::optional<Delta> delta = evaluator_.Evaluate(pattern)) {
      patterns->push_back({std::move(pattern), delta->Score()});
    }
  }

  // The patterns of one side, with those of the other and alone.
  void Combine(const std::vector<ScoredPattern>& a, const std::vector<ScoredPattern>& b, const Pattern& first,
               std::vector<ScoredPattern>* out) const {
    for (const ScoredPattern& x : a) Add(Union(first, x.vertices), out);
    for (const ScoredPattern& y : b) Add(Union(first, y.vertices), out);
    for (const ScoredPattern& x : a) {
      for (const ScoredPattern& y : b) Add(Union(first, Union(x.vertices, y.vertices)), out);
    }
  }

  // The best patterns of `first` with patterns of consumers [begin, end). Groups are halved until they are small.
  std::vector<ScoredPattern> OfGroup(const std::vector<int>& consumers, size_t begin, size_t end,
                                     const Pattern& first) const {
    std::vector<ScoredPattern> found;
    const std::vector<ScoredPattern> none;
    if (end - begin <= kSmallGroup) {
      if (begin == end) return found;
      Combine(candidates_[consumers[begin]], end - begin > 1 ? candidates_[consumers[begin + 1]] : none, first, &found);
      return Top(std::move(found));
    }
    const size_t middle = begin + (end - begin) / 2;
    Combine(OfGroup(consumers, begin, middle, first), OfGroup(consumers, middle, end, first), {}, &found);
    return Top(std::move(found));
  }

  // Remote fusion: PatternReduction of a virtual vertex that produces for all others. Those of the same parallelism,
  // which alone can be packed, lie beside each other before the consumers are halved. The best patterns of every group
  // are candidates, and so are those of neighbours that halving puts into two groups.
  absl::Status Remote(std::vector<std::vector<ScoredPattern>>* result) const {
    std::vector<int> order;
    for (int v = 0; v < graph_.size(); ++v) {
      if (graph_[v].memory_intensive) order.push_back(v);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return graph_[a].result_elements < graph_[b].result_elements; });
    const auto offer = [&](const ScoredPattern& pattern) {
      std::vector<ScoredPattern>& known = (*result)[pattern.vertices[0]];
      const bool there = std::any_of(known.begin(), known.end(),
                                     [&](const ScoredPattern& p) { return p.vertices == pattern.vertices; });
      if (!there) known.push_back(pattern);
    };
    std::vector<std::vector<ScoredPattern>> groups;
    for (int v : order) {
      groups.push_back(candidates_[v]);
      if (groups.back().empty()) groups.back() = {{{v}, 0}};
    }
    for (size_t g = 0; g + 1 < groups.size(); ++g) {
      RETURN_IF_ERROR(Cancelled());
      std::vector<ScoredPattern> found;
      for (const ScoredPattern& x : groups[g]) {
        for (const ScoredPattern& y : groups[g + 1]) Add(Union(x.vertices, y.vertices), &found);
      }
      for (const ScoredPattern& pattern : Top(std::move(found))) offer(pattern);
    }
    while (groups.size() > 1) {
      std::vector<std::vector<ScoredPattern>> halves;
      for (size_t g = 0; g < groups.size(); g += 2) {
        RETURN_IF_ERROR(Cancelled());
        if (g + 1 == groups.size()) {
          halves.push_back(std::move(groups[g]));
          continue;
        }
        std::vector<ScoredPattern> found;
        for (const ScoredPattern& x : groups[g]) {
          for (const ScoredPattern& y : groups[g + 1]) Add(Union(x.vertices, y.vertices), &found);
        }
        for (const ScoredPattern& pattern : Top(found)) offer(pattern);
        found.insert(found.end(), groups[g].begin(), groups[g].end());
        found.insert(found.end(), groups[g + 1].begin(), groups[g + 1].end());
        halves.push_back(Top(std::move(found)));
      }
      groups = std::move(halves);
    }
    return absl::OkStatus();
  }

  const KernelGraph& graph_;
  const DeltaEvaluator& evaluator_;
  const std::function<bool()>& cancelled_;
  std::vector<std::vector<ScoredPattern>> candidates_;  // by vertex, itself alone included
};

}  // namespace

absl::StatusOr<std::vector<std::vector<ScoredPattern>>> CandidatePatterns(const KernelGraph& graph,
                                                                          const DeltaEvaluator& evaluator,
                                                                          const std::function<bool()>& cancelled) {
  return Reduction(graph, evaluator, cancelled).Run();
}

}  // namespace fusion
