#include "compiler/plan/planners/graph_turbo/split_info.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace fusion::graph_turbo {
namespace {

class Splitter {
 public:
  Splitter(const OpGraph& graph, const SubGraph& sub_graph, const SplitLimits& limits)
      : graph_(graph), sub_graph_(sub_graph), limits_(limits), outputs_(OutputsOf(graph, sub_graph)) {
    for (const int op : sub_graph.ops) whole_work_ += graph.ops[op].work;
  }

  std::vector<Split> Run() const {
    const Shape& shape = graph_.tensors[outputs_[0]].shape;
    std::vector<Split> splits;
    if (shape.empty()) {
      if (std::optional<Split> whole = Try({}, 0)) splits.push_back(*whole);
      return splits;
    }
    Factors outside(shape.size(), 1);
    std::vector<bool> single(shape.size(), false);  // split to single indices
    for (size_t level = 0; level < shape.size() && splits.empty(); ++level) {
      if (level > 0) {
        const size_t next = level == 1 ? 0 : SmallestPeak(outside, single);
        single[next] = true;
        outside[next] = shape[next];
      }
      const size_t last = level == 0 && !limits_.literal ? 1 : shape.size();
      for (size_t d = 0; d < last; ++d) {
        if (single[d]) continue;
        for (const int64_t v : SplitFactors(shape[d], limits_.literal)) {
          Factors factors = outside;
          factors[d] = v;
          std::optional<Split> split = Try(factors, static_cast<int>(d));
          if (!split) continue;
          splits.push_back(*std::move(split));
          break;
        }
      }
    }
    return splits;
  }

 private:
  // The dimension, of those that are left, whose single indices need the least memory within `outside`.
  size_t SmallestPeak(const Factors& outside, const std::vector<bool>& single) const {
    const Shape& shape = graph_.tensors[outputs_[0]].shape;
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t d = 0; d < shape.size(); ++d) {
      if (single[d]) continue;
      Factors factors = outside;
      factors[d] = shape[d];
      std::vector<int64_t> middle;
      for (const int64_t factor : factors) middle.push_back(factor / 2);
      const OutputPieces pieces = PiecesOf(graph_, outputs_, factors, middle);
      const double peak = pieces.ok ? FootprintOf(graph_, sub_graph_, pieces.regions).peak_bytes : least;
      if (peak < least || single[best]) best = d;
      least = std::min(least, peak);
    }
    return best;
  }

  // Instances at the borders have smaller halos than those between, so the first, a middle and the last piece of each
  // split dimension stand for all of them, each as often as there are such pieces.
  std::optional<Split> Try(const Factors& factors, int d) const {
    std::vector<std::vector<std::pair<int64_t, double>>> samples;  // by dimension: piece, how many it stands for
    for (const int64_t factor : factors) {
      if (factor <= 3) {
        std::vector<std::pair<int64_t, double>>& all = samples.emplace_back();
        for (int64_t piece = 0; piece < factor; ++piece) all.emplace_back(piece, 1);
      } else {
        samples.push_back({{0, 1}, {factor / 2, static_cast<double>(factor - 2)}, {factor - 1, 1}});
      }
    }
    Split split;
    split.f = Pieces(factors);
    split.d = d;
    split.factors = factors;
    double work = 0;
    std::set<int> split_tensors;
    std::vector<size_t> choice(factors.size(), 0);
    while (true) {
      double count = 1;
      std::vector<int64_t> at(factors.size());
      for (size_t k = 0; k < factors.size(); ++k) {
        at[k] = samples[k][choice[k]].first;
        count *= samples[k][choice[k]].second;
      }
      const OutputPieces pieces = PiecesOf(graph_, outputs_, factors, at);
      if (!pieces.ok) return std::nullopt;
      const Footprint footprint = FootprintOf(graph_, sub_graph_, pieces.regions);
      split.peak_bytes = std::max(split.peak_bytes, footprint.peak_bytes);
      if (split.peak_bytes > limits_.fast_bytes) return std::nullopt;
      work += count * footprint.work;
      for (const auto& [tensor, region] : footprint.regions) {
        if (region.elements() < NumElements(graph_.tensors[tensor].shape)) split_tensors.insert(tensor);
      }
      size_t k = factors.size();
      while (k-- > 0 && ++choice[k] == samples[k].size()) choice[k] = 0;
      if (k == static_cast<size_t>(-1)) break;
    }
    split.recomputation = whole_work_ > 0 ? work / whole_work_ : 1;
    if (split.recomputation > limits_.recomputation) return std::nullopt;
    for (const int op : sub_graph_.ops) {
      const auto is_split = [&](int tensor) { return split_tensors.count(tensor) > 0; };
      const std::vector<int>& made = graph_.ops[op].outputs;
      // An instance that is the whole splits nothing and is as good as a split of everything: f decides.
      split.n += split.f == 1 || std::any_of(made.begin(), made.end(), is_split);
    }
    return split;
  }

  const OpGraph& graph_;
  const SubGraph& sub_graph_;
  const SplitLimits& limits_;
  const std::vector<int> outputs_;
  double whole_work_ = 0;
};

}  // namespace

std::vector<int64_t> SplitFactors(int64_t extent, bool literal) {
  const auto listed = [&](int64_t v) { return v == 1 || v == 2 || v == 4 || v >= 8 || v == extent; };
  std::vector<int64_t> factors;
  int64_t divisor = extent;  // the next one of the list that divides, from v on
  for (int64_t v = extent; v >= 1; --v) {
    if (!listed(v)) continue;
    if (extent % v == 0) divisor = v;
    // Do ceil(extent / v) elements a piece make v pieces?
    const bool pieces = PieceLength(extent, PieceLength(extent, v)) == v;
    if (divisor == v || (!literal && divisor >= 2 * v && pieces)) factors.push_back(v);
  }
  std::reverse(factors.begin(), factors.end());
  return factors;
}

std::vector<Split> SplitInfo(const OpGraph& graph, const SubGraph& sub_graph, const SplitLimits& limits) {
  return Splitter(graph, sub_graph, limits).Run();
}

std::optional<Split> BestSplit(const std::vector<Split>& splits) {
  const auto best = std::max_element(splits.begin(), splits.end(), [](const Split& a, const Split& b) {
    return std::make_tuple(a.n, -a.f, -a.d) < std::make_tuple(b.n, -b.f, -b.d);
  });
  if (best == splits.end()) return std::nullopt;
  return *best;
}

}  // namespace fusion::graph_turbo
