#include "compiler/plan/planners/graph_turbo/group.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace fusion::graph_turbo {

bool RuleOne(int64_t f_first, int64_t f_second, int64_t f_merged) {
  return f_second >= f_first && f_merged <= f_second;
}

bool RuleTwo(const std::vector<int64_t>& f_parts, int64_t f_merged) {
  return f_merged <= *std::max_element(f_parts.begin(), f_parts.end());
}

namespace {

class Grouper {
 public:
  Grouper(const OpGraph& graph, const SplitLimits& limits, const GroupRules& rules)
      : graph_(graph), limits_(limits), rules_(rules) {
    for (int op = 0; op < static_cast<int>(graph.ops.size()); ++op) {
      vertices_[op] = {SubGraph{{op}}, std::nullopt};
      vertices_[op].best = BestSplit(SplitInfo(graph, vertices_[op].sub_graph, limits));
      vertex_of_.push_back(op);
    }
  }

  Grouping Run() {
    // Until none of the three numbers of sub-graphs decreases.
    size_t before = 0;
    do {
      before = vertices_.size();
      MergeAll(&Grouper::Straight);
      MergeAll(&Grouper::Diamond);
      MergeAll(&Grouper::Branch);
    } while (vertices_.size() < before);
    Grouping grouping;
    for (const int vertex : TopologicalOrder()) grouping.sub_graphs.push_back(vertices_.at(vertex));
    grouping.merges = std::move(merges_);
    return grouping;
  }

 private:
  using Vertices = std::map<int, GroupedSubGraph>;  // by the last operator, which no producer of the vertex follows

  std::set<int> Producers(int vertex) const {
    std::set<int> producers;
    for (const int tensor : InputsOf(graph_, vertices_.at(vertex).sub_graph)) {
      if (graph_.tensors[tensor].producer != kNone) producers.insert(vertex_of_[graph_.tensors[tensor].producer]);
    }
    return producers;
  }
  std::set<int> Consumers(int vertex) const {
    std::set<int> consumers;
    for (const int tensor : OutputsOf(graph_, vertices_.at(vertex).sub_graph)) {
      for (const int op : graph_.tensors[tensor].consumers) {
        if (vertex_of_[op] != vertex) consumers.insert(vertex_of_[op]);
      }
    }
    return consumers;
  }
  bool ReturnsSomething(int vertex) const {
    const std::vector<int> outputs = OutputsOf(graph_, vertices_.at(vertex).sub_graph);
    return std::any_of(outputs.begin(), outputs.end(), [&](int t) { return graph_.tensors[t].model_output; });
  }

  // Each pattern looks for merges with `exit` as their last sub-graph, and makes at most one.
  using Pattern = bool (Grouper::*)(int exit);
  void MergeAll(Pattern pattern) {
    bool changed = true;
    while (changed) {
      changed = false;
      std::vector<int> exits;
      for (const auto& [vertex, ignored] : vertices_) exits.push_back(vertex);
      for (const int exit : exits) {
        while (vertices_.count(exit) > 0 && (this->*pattern)(exit)) changed = true;
      }
    }
  }

  bool Straight(int exit) {
    const std::set<int> producers = Producers(exit);
    if (producers.size() != 1 || Consumers(*producers.begin()).size() != 1) return false;
    return MergeByRuleOne("straight", *producers.begin(), exit);
  }

  bool Branch(int exit) {
    const std::set<int> producers = Producers(exit);
    if (producers.size() < 2) return false;
    for (const int producer : producers) {
      if (Consumers(producer).size() == 1 && MergeByRuleOne("branch", producer, exit)) return true;
    }
    return false;
  }

  bool Diamond(int exit) {
    const std::set<int> producers = Producers(exit);
    if (producers.size() < 2) return false;
    // The entry is a producer of the exit, or the only producer of all of them.
    std::set<int> entries = producers;
    for (const int producer : producers) {
      const std::set<int> above = Producers(producer);
      entries.insert(above.begin(), above.end());
    }
    for (const int entry : entries) {
      std::vector<int> parts;
      bool matches = true;
      for (const int producer : producers) {
        if (producer == entry) continue;
        matches = matches && Producers(producer) == std::set<int>{entry} && Consumers(producer).size() == 1;
        parts.push_back(producer);
      }
      if (!matches || parts.empty()) continue;
      parts.push_back(exit);
      std::vector<int64_t> factors;
      for (const int part : parts) {
        if (!vertices_.at(part).best)
          matches = false;
        else
          factors.push_back(vertices_.at(part).best->f);
      }
      if (matches && Merge("diamond", parts, [&](int64_t f) { return RuleTwo(factors, f); })) return true;
    }
    return false;
  }

  bool MergeByRuleOne(const char* pattern, int first, int second) {
    const auto &a = vertices_.at(first).best, &b = vertices_.at(second).best;
    if (!a || !b || (!rules_.wherever_fits && b->f < a->f)) return false;
    const int64_t f_first = a->f, f_second = b->f;
    return Merge(pattern, {first, second}, [&](int64_t f) { return RuleOne(f_first, f_second, f); });
  }

  // `parts` ends with the exit. A merge keeps one output (section 3.1): what the others hand out, only the exit reads.
  template <typename Rule>
  bool Merge(const char* pattern, const std::vector<int>& parts, const Rule& rule) {
    GroupedSubGraph merged;
    std::string text = absl::StrCat(pattern, ":");
    for (const int part : parts) {
      const std::vector<int>& ops = vertices_.at(part).sub_graph.ops;
      if (part != parts.back() && ReturnsSomething(part)) return false;
      absl::StrAppend(&text, part == parts.front() ? " " : " + ", NameOf(part));
      merged.sub_graph.ops.insert(merged.sub_graph.ops.end(), ops.begin(), ops.end());
    }
    std::sort(merged.sub_graph.ops.begin(), merged.sub_graph.ops.end());
    if (!tried_.insert(merged.sub_graph.ops).second) return false;
    if (OutputsOf(graph_, merged.sub_graph).size() != 1) return false;
    merged.best = BestSplit(SplitInfo(graph_, merged.sub_graph, limits_));
    if (!merged.best || (!rules_.wherever_fits && !rule(merged.best->f))) return false;
    merges_.push_back(absl::StrCat(text, ", f ", merged.best->f));
    for (const int part : parts) vertices_.erase(part);
    for (const int op : merged.sub_graph.ops) vertex_of_[op] = parts.back();
    vertices_[parts.back()] = std::move(merged);
    return true;
  }

  std::string NameOf(int vertex) const {
    return graph_.tensors[OutputsOf(graph_, vertices_.at(vertex).sub_graph)[0]].name;
  }

  // Vertices are named by their exits. All that a vertex reads is made by vertices with earlier exits, because its
  // parts hand their results to the exit only.
  std::vector<int> TopologicalOrder() const {
    std::vector<int> order;
    std::set<int> done;
    const auto visit = [&](const auto& self, int vertex) -> void {
      if (!done.insert(vertex).second) return;
      for (const int producer : Producers(vertex)) self(self, producer);
      order.push_back(vertex);
    };
    for (const auto& [vertex, ignored] : vertices_) visit(visit, vertex);
    return order;
  }

  const OpGraph& graph_;
  const SplitLimits& limits_;
  const GroupRules rules_;
  Vertices vertices_;
  std::vector<int> vertex_of_;  // by operator
  std::set<std::vector<int>> tried_;
  std::vector<std::string> merges_;
};

}  // namespace

Grouping GroupSubGraphs(const OpGraph& graph, const SplitLimits& limits, const GroupRules& rules) {
  return Grouper(graph, limits, rules).Run();
}

}  // namespace fusion::graph_turbo
