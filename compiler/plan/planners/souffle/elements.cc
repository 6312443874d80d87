#include "compiler/plan/planners/souffle/elements.h"

#include <algorithm>
#include <limits>
#include <map>

#include "runtime/base/status_macros.h"

namespace fusion::souffle {

namespace {

using ecg::NodeId;

constexpr int kUnplaced = -2, kBeginning = -1;

}  // namespace

absl::StatusOr<std::vector<ecg::NodeExpressions>> FactsOf(const ecg::Graph& graph) {
  std::vector<ecg::NodeExpressions> facts;
  for (NodeId id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    ASSIGN_OR_RETURN(facts.emplace_back(), ecg::ExpressionsOf(graph, id));
  }
  return facts;
}

std::vector<Element> ElementsOf(const ecg::Graph& graph, const std::vector<ecg::NodeExpressions>& facts, CutAt cut_at) {
  const int n = static_cast<int>(graph.nodes().size());
  std::map<int, Element> elements;  // by place; a routine leaves the place behind it to what follows it
  std::vector<int> place(n, kUnplaced);
  int next = 0;
  for (NodeId id = 0; id < n; ++id) {
    const ecg::NodeExpressions& fact = facts[id];
    const bool anchor = fact.routine || fact.ComputeIntensive() || (cut_at == CutAt::kReductions && fact.reduces);
    if (anchor) {
      place[id] = next;
      elements[next] = {{}, id, fact.ComputeIntensive() && !fact.routine, fact.routine};
      next += fact.routine ? 2 : 1;
      continue;
    }
    for (const ecg::ValueId v : graph.node(id).inputs) {
      const NodeId producer = v == ecg::kNone ? ecg::kNone : graph.value(v).producer;
      if (producer == ecg::kNone || place[producer] == kUnplaced) continue;
      const bool behind = facts[producer].routine;
      place[id] = std::max(place[id], place[producer] + (behind ? 1 : 0));
    }
  }
  for (NodeId id = n; id-- > 0;) {
    if (place[id] != kUnplaced) continue;
    int first = std::numeric_limits<int>::max();
    for (const ecg::ValueId v : graph.node(id).outputs) {
      if (v == ecg::kNone) continue;
      for (const NodeId reader : graph.value(v).consumers) {
        first = std::min(first, place[reader] - (facts[reader].routine ? 1 : 0));
      }
    }
    place[id] = first == std::numeric_limits<int>::max() ? kBeginning : first;
  }
  for (NodeId id = 0; id < n; ++id) elements[place[id]].nodes.push_back(id);
  std::vector<Element> row;
  for (auto& [at, element] : elements) {
    if (!element.nodes.empty()) row.push_back(std::move(element));
  }
  return row;
}

}  // namespace fusion::souffle
