#include "tests/fuzz/graphs/shrink.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fusion::fuzz {
namespace {

constexpr size_t kBatch = 48;

// Returns the graph that computes `outputs` (results of nodes) from the values in `cut`, which become inputs.
ecg::Graph Part(const ecg::Graph& graph, const std::vector<ecg::ValueId>& outputs, const std::set<ecg::ValueId>& cut) {
  std::set<ecg::ValueId> read(outputs.begin(), outputs.end());
  std::vector<bool> kept(graph.nodes().size(), false);
  for (int n = static_cast<int>(graph.nodes().size()) - 1; n >= 0; --n) {
    const ecg::Node& node = graph.node(n);
    kept[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ecg::ValueId id) { return read.count(id) > 0 && cut.count(id) == 0; });
    if (kept[n]) read.insert(node.inputs.begin(), node.inputs.end());
  }
  ecg::Graph part;
  std::map<ecg::ValueId, ecg::ValueId> map{{ecg::kNone, ecg::kNone}};
  const auto add_input = [&](ecg::ValueId id) { map[id] = part.AddInput(graph.value(id).name, graph.value(id).type); };
  for (ecg::ValueId id : graph.inputs()) {
    if (read.count(id) > 0) add_input(id);
  }
  for (ecg::ValueId id : cut) {
    if (read.count(id) > 0) add_input(id);
  }
  for (size_t n = 0; n < kept.size(); ++n) {
    if (!kept[n]) continue;
    const ecg::Node& node = graph.node(static_cast<ecg::NodeId>(n));
    std::vector<ecg::ValueId> inputs;
    for (ecg::ValueId id : node.inputs) {
      if (map.count(id) == 0) map[id] = part.AddConstant(graph.value(id).name, *graph.value(id).constant);
      inputs.push_back(map[id]);
    }
    std::vector<ecg::ValueType> types;
    std::vector<std::string> names;
    for (ecg::ValueId id : node.outputs) {
      types.push_back(graph.value(id).type);
      names.push_back(graph.value(id).name);
      if (cut.count(id) > 0) names.back() += "_";
    }
    const ecg::NodeId copy = part.AddNode(node.op, "", inputs, node.attrs, types, names);
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (cut.count(node.outputs[o]) == 0) map[node.outputs[o]] = part.node(copy).outputs[o];
    }
  }
  for (ecg::ValueId id : outputs) part.AddOutput(map[id], graph.value(id).name);
  return part;
}

// Returns candidates with the smallest graphs first.
std::vector<ecg::Graph> Candidates(const ecg::Graph& graph) {
  std::vector<ecg::Graph> all;
  const std::vector<ecg::ValueId>& outputs = graph.outputs();
  if (outputs.size() > 1) {
    for (ecg::ValueId id : outputs) all.push_back(Part(graph, {id}, {}));
    for (size_t o = 0; o < outputs.size(); ++o) {
      std::vector<ecg::ValueId> fewer = outputs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(o));
      all.push_back(Part(graph, fewer, {}));
    }
  }
  for (const ecg::Node& node : graph.nodes()) {
    for (ecg::ValueId id : node.outputs) {
      if (!graph.IsOutput(id)) {
        all.push_back(Part(graph, outputs, {id}));  // without the nodes that compute it
        std::vector<ecg::ValueId> instead = {id};   // without the nodes that read it
        if (outputs.size() == 1) all.push_back(Part(graph, instead, {}));
      }
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const ecg::Graph& a, const ecg::Graph& b) {
    return std::make_pair(a.nodes().size(), a.outputs().size()) < std::make_pair(b.nodes().size(), b.outputs().size());
  });
  return all;
}

}  // namespace

ecg::Graph Shrink(const ecg::Graph& graph,
                  const std::function<std::vector<bool>(const std::vector<ecg::Graph>&)>& fails) {
  ecg::Graph smallest = graph;
  for (bool progress = true; progress;) {
    progress = false;
    const std::vector<ecg::Graph> candidates = Candidates(smallest);
    for (size_t begin = 0; begin < candidates.size() && !progress; begin += kBatch) {
      const std::vector<ecg::Graph> batch(
          candidates.begin() + static_cast<std::ptrdiff_t>(begin),
          candidates.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kBatch, candidates.size())));
      const std::vector<bool> failed = fails(batch);
      for (size_t k = 0; k < batch.size() && !progress; ++k) {
        if (!failed[k]) continue;
        smallest = batch[k];
        progress = true;
      }
    }
  }
  return smallest;
}

}  // namespace fusion::fuzz
