#include "compiler/plan/planners/graph_turbo/sub_graph.h"

#include <algorithm>
#include <set>

namespace fusion::graph_turbo {
namespace {

bool Contains(const SubGraph& sub_graph, int op) {
  return std::binary_search(sub_graph.ops.begin(), sub_graph.ops.end(), op);
}

bool LeavesSubGraph(const OpGraph& graph, const SubGraph& sub_graph, int tensor) {
  const Tensor& t = graph.tensors[tensor];
  return t.model_output || t.consumers.empty() ||
         std::any_of(t.consumers.begin(), t.consumers.end(), [&](int op) { return !Contains(sub_graph, op); });
}

}  // namespace

std::vector<int> OutputsOf(const OpGraph& graph, const SubGraph& sub_graph) {
  std::vector<int> outputs;
  for (const int op : sub_graph.ops) {
    for (const int tensor : graph.ops[op].outputs) {
      if (LeavesSubGraph(graph, sub_graph, tensor)) outputs.push_back(tensor);
    }
  }
  return outputs;
}

std::vector<int> InputsOf(const OpGraph& graph, const SubGraph& sub_graph) {
  std::set<int> inputs;
  for (const int op : sub_graph.ops) {
    for (const int tensor : graph.ops[op].inputs) {
      if (tensor != kNone && !Contains(sub_graph, graph.tensors[tensor].producer)) inputs.insert(tensor);
    }
  }
  return {inputs.begin(), inputs.end()};
}

int64_t PieceLength(int64_t extent, int64_t factor) { return (extent + factor - 1) / factor; }

int64_t Pieces(const Factors& factors) {
  int64_t product = 1;
  for (const int64_t factor : factors) product *= factor;
  return product;
}

std::vector<int64_t> PieceAt(const Factors& factors, int64_t number) {
  std::vector<int64_t> at(factors.size());
  for (size_t d = factors.size(); d-- > 0;) {
    at[d] = number % factors[d];
    number /= factors[d];
  }
  return at;
}

Region PieceOf(const Shape& shape, const Factors& factors, const std::vector<int64_t>& at) {
  Region region;
  region.nothing = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const int64_t length = PieceLength(shape[d], factors[d]);
    region.ranges.push_back({at[d] * length, std::min((at[d] + 1) * length, shape[d])});
  }
  return region;
}

OutputPieces PiecesOf(const OpGraph& graph, const std::vector<int>& outputs, const Factors& factors,
                      const std::vector<int64_t>& at) {
  OutputPieces pieces;
  const Shape& first = graph.tensors[outputs[0]].shape;
  for (const int output : outputs) {
    const Shape& shape = graph.tensors[output].shape;
    Factors own(shape.size(), 1);
    std::vector<int64_t> own_at(shape.size(), 0);
    for (size_t d = 0; d < factors.size(); ++d) {
      if (factors[d] == 1) continue;
      if (d >= shape.size() || shape[d] != first[d]) {
        pieces.ok = false;
        return pieces;
      }
      own[d] = factors[d];
      own_at[d] = at[d];
    }
    pieces.regions.push_back(PieceOf(shape, own, own_at));
  }
  return pieces;
}

Footprint FootprintOf(const OpGraph& graph, const SubGraph& sub_graph, const std::vector<Region>& outputs) {
  Footprint footprint;
  const std::vector<int> output_tensors = OutputsOf(graph, sub_graph);
  for (size_t o = 0; o < outputs.size(); ++o) footprint.regions[output_tensors[o]] = outputs[o];
  std::map<int, size_t> last_use;  // by tensor: a position in ops
  for (size_t i = sub_graph.ops.size(); i-- > 0;) {
    const Op& op = graph.ops[sub_graph.ops[i]];
    std::vector<Region> made;
    for (const int tensor : op.outputs) made.push_back(footprint.regions[tensor]);
    const AccessMap::Needs needs = op.access.Required(made);
    footprint.work += needs.work;
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      if (op.inputs[k] == kNone) continue;
      footprint.regions[op.inputs[k]].Join(needs.inputs[k]);
      last_use.emplace(op.inputs[k], i);
    }
  }
  for (const int tensor : output_tensors) last_use[tensor] = sub_graph.ops.size();
  double live = 0;
  for (const int tensor : InputsOf(graph, sub_graph)) {
    live += graph.tensors[tensor].bytes(footprint.regions[tensor]);
  }
  for (size_t i = 0; i < sub_graph.ops.size(); ++i) {
    const Op& op = graph.ops[sub_graph.ops[i]];
    for (const int tensor : op.outputs) live += graph.tensors[tensor].bytes(footprint.regions[tensor]);
    footprint.peak_bytes = std::max(footprint.peak_bytes, live);
    std::set<int> touched(op.inputs.begin(), op.inputs.end());
    touched.insert(op.outputs.begin(), op.outputs.end());
    for (const int tensor : touched) {
      if (tensor == kNone) continue;
      const auto last = last_use.find(tensor);
      // A result that nothing reads is dropped at once.
      if (last == last_use.end() || last->second == i) live -= graph.tensors[tensor].bytes(footprint.regions[tensor]);
    }
  }
  return footprint;
}

}  // namespace fusion::graph_turbo
