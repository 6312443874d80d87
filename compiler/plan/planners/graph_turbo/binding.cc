#include "compiler/plan/planners/graph_turbo/binding.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace fusion::graph_turbo {

Factors PlainBinding(const Region& piece, int cores) {
  Factors factors;
  int64_t left = cores;
  for (const Range& range : piece.ranges) {
    int64_t factor = 8;
    while (factor > 1 && (factor > left || range.length() % factor != 0)) factor /= 2;
    factors.push_back(factor);
    left /= factor;
  }
  return factors;
}

std::optional<Factors> InferBinding(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                    const InstanceGraph& instances, int i, const Factors& binding, int tensor,
                                    int maker) {
  const Instance& instance = instances.instances[i];
  const SubGraph& sub_graph = sub_graphs[instance.sub_graph].sub_graph;
  Factors inferred(graph.tensors[tensor].shape.size(), 1);
  bool any = false;
  for (size_t d = 0; d < binding.size(); ++d) {
    if (binding[d] == 1) continue;
    // A dimension of the tensor matches where the first and the last core along this one begin to read elsewhere.
    const auto read_by = [&](int64_t core) {
      std::vector<Region> outputs = instance.outputs;
      Range& range = outputs[0].ranges[d];
      const int64_t length = range.length() / binding[d];
      range.begin += core * length;
      range.end = range.begin + length;
      for (size_t o = 1; o < outputs.size(); ++o) outputs[o].nothing = true;
      return FootprintOf(graph, sub_graph, outputs).regions[tensor];
    };
    const Region first = read_by(0), last = read_by(binding[d] - 1);
    if (first.nothing || last.nothing) continue;
    for (size_t j = 0; j < inferred.size(); ++j) {
      if (first.ranges[j].begin == last.ranges[j].begin) continue;
      inferred[j] *= binding[d];
      any = true;
      break;
    }
  }
  if (!any) return std::nullopt;
  const std::vector<int> outputs = OutputsOf(graph, sub_graphs[instances.instances[maker].sub_graph].sub_graph);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (outputs[o] != tensor) continue;
    const Region& piece = instances.instances[maker].outputs[o];
    for (size_t j = 0; j < inferred.size(); ++j) {
      if (piece.ranges[j].length() % inferred[j] != 0) return std::nullopt;
    }
  }
  return inferred;
}

namespace {

std::vector<int64_t> Lengths(const Region& region) {
  std::vector<int64_t> lengths;
  for (const Range& range : region.ranges) lengths.push_back(range.length());
  return lengths;
}

// InferBinding with a memory. Instances of one sub-graph whose pieces are as long are alike, so the answer is theirs.
class Inference {
 public:
  Inference(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs, const InstanceGraph& instances)
      : graph_(graph), sub_graphs_(sub_graphs), instances_(instances) {}

  const std::optional<Factors>& Of(int i, const Factors& binding, int tensor, int maker) {
    const Instance &reader = instances_.instances[i], &made_by = instances_.instances[maker];
    const auto [it, added] = known_.try_emplace({reader.sub_graph, binding, tensor, made_by.sub_graph,
                                                 Lengths(reader.outputs[0]), Lengths(made_by.outputs[0])});
    if (added) it->second = InferBinding(graph_, sub_graphs_, instances_, i, binding, tensor, maker);
    return it->second;
  }

 private:
  const OpGraph& graph_;
  const std::vector<GroupedSubGraph>& sub_graphs_;
  const InstanceGraph& instances_;
  // By reader, its binding, the tensor, its maker, and the lengths of both instances' pieces.
  std::map<std::tuple<int, Factors, int, int, std::vector<int64_t>, std::vector<int64_t>>, std::optional<Factors>>
      known_;
};

}  // namespace

std::vector<Binding> InferBindings(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                   const InstanceGraph& instances, const std::vector<int>& order, int cores) {
  std::vector<Binding> bindings(instances.instances.size());
  Inference inference(graph, sub_graphs, instances);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    Binding& own = bindings[*at];
    const Factors plain = PlainBinding(instances.instances[*at].outputs[0], cores);
    if (own.factors.empty() || own.scope != BufferScope::kLocal || Pieces(plain) > Pieces(own.factors)) {
      own.factors = plain;
    }
    for (const auto& [tensor, makers] : instances.instances[*at].makers) {
      for (const int maker : makers) {
        const std::optional<Factors>& inferred = inference.Of(*at, own.factors, tensor, maker);
        if (!inferred) continue;
        if (bindings[maker].factors.empty()) {
          bindings[maker].factors = *inferred;
        } else if (bindings[maker].factors != *inferred) {
          bindings[maker].scope = BufferScope::kGlobal;
        }
      }
    }
  }
  return bindings;
}

std::vector<Movement> InsertMovements(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                                      const InstanceGraph& instances, const std::vector<Binding>& bindings) {
  std::vector<Movement> movements;
  Inference inference(graph, sub_graphs, instances);
  for (int i = 0; i < static_cast<int>(instances.instances.size()); ++i) {
    for (const auto& [tensor, makers] : instances.instances[i].makers) {
      for (const int maker : makers) {
        const std::optional<Factors>& wanted = inference.Of(i, bindings[i].factors, tensor, maker);
        if (bindings[maker].scope == BufferScope::kGlobal) {
          movements.push_back({MovementKind::kCopy, tensor, i, maker});
        } else if (wanted && *wanted != bindings[maker].factors) {
          movements.push_back({MovementKind::kRedistribute, tensor, i, maker});
        }
      }
      if (makers.size() > 1) movements.push_back({MovementKind::kConcatenate, tensor, i, kNone});
    }
  }
  return movements;
}

}  // namespace fusion::graph_turbo
