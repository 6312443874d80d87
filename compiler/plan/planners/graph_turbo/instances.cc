#include "compiler/plan/planners/graph_turbo/instances.h"

#include <algorithm>
#include <set>

namespace fusion::graph_turbo {
namespace {

// How the instances of one sub-graph cut a tensor that it makes.
struct Cut {
  int sub_graph = kNone;
  Factors factors;  // of the sub-graph's first output; the other outputs are cut alike
};

Factors FactorsOf(const OpGraph& graph, const GroupedSubGraph& grouped) {
  if (grouped.best) return grouped.best->factors;
  return Factors(graph.tensors[OutputsOf(graph, grouped.sub_graph)[0]].shape.size(), 1);
}

// The numbers of the instances whose part of `tensor` shares an element with `region`, ascending.
std::vector<int64_t> MakersOf(const Tensor& tensor, const Cut& cut, const Region& region) {
  std::vector<int64_t> numbers;
  if (region.nothing) return numbers;
  numbers.push_back(0);
  for (size_t d = 0; d < cut.factors.size(); ++d) {
    int64_t first = 0, last = 0;
    if (cut.factors[d] > 1) {
      const int64_t length = PieceLength(tensor.shape[d], cut.factors[d]);
      first = region.ranges[d].begin / length;
      last = (region.ranges[d].end - 1) / length;
    }
    std::vector<int64_t> next;
    for (const int64_t number : numbers) {
      for (int64_t at = first; at <= last; ++at) next.push_back(number * cut.factors[d] + at);
    }
    numbers = std::move(next);
  }
  return numbers;
}

}  // namespace

InstanceGraph MakeInstances(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs) {
  InstanceGraph made;
  std::map<int, Cut> cut_of;  // by tensor
  std::vector<int64_t> counts;
  for (int s = 0; s < static_cast<int>(sub_graphs.size()); ++s) {
    const SubGraph& sub_graph = sub_graphs[s].sub_graph;
    const std::vector<int> outputs = OutputsOf(graph, sub_graph), inputs = InputsOf(graph, sub_graph);
    const Factors factors = FactorsOf(graph, sub_graphs[s]);
    for (const int output : outputs) cut_of[output] = {s, factors};
    made.first.push_back(static_cast<int>(made.instances.size()));
    counts.push_back(Pieces(factors));
    std::set<int> above;
    for (int64_t number = 0; number < counts.back(); ++number) {
      const int id = static_cast<int>(made.instances.size());
      Instance& instance = made.instances.emplace_back();
      instance.sub_graph = s;
      instance.number = number;
      instance.outputs = PiecesOf(graph, outputs, factors, PieceAt(factors, number)).regions;
      instance.footprint = FootprintOf(graph, sub_graph, instance.outputs);
      std::set<int> producers;
      for (const int tensor : inputs) {
        const auto cut = cut_of.find(tensor);
        if (cut == cut_of.end()) continue;  // the model's input
        above.insert(cut->second.sub_graph);
        for (const int64_t maker : MakersOf(graph.tensors[tensor], cut->second, instance.footprint.regions[tensor])) {
          const int producer = made.first[cut->second.sub_graph] + static_cast<int>(maker);
          instance.makers[tensor].push_back(producer);
          producers.insert(producer);
        }
      }
      instance.producers.assign(producers.begin(), producers.end());
      made.edges += static_cast<int64_t>(producers.size());
      for (const int producer : producers) made.instances[producer].consumers.push_back(id);
    }
    for (const int producer : above) made.inherited_edges += counts[producer] * counts[s];
  }
  return made;
}

}  // namespace fusion::graph_turbo
