#include "compiler/plan/planners/graph_turbo/weight_traffic.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace fusion::graph_turbo {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Weight {
  double bytes = 0;
  std::vector<int64_t> uses;  // positions in the sequence of uses, ascending
  size_t next = 0;            // the first of them that has not been
  bool here = false;

  int64_t NextUse() const { return next == uses.size() ? kNever : uses[next]; }
};

// The weights of each operator, as numbers of `weights`.
std::vector<std::vector<int>> WeightsOfOps(const OpGraph& graph, std::vector<Weight>* weights) {
  std::vector<std::vector<int>> of_op(graph.ops.size());
  for (size_t o = 0; o < graph.ops.size(); ++o) {
    const Op& op = graph.ops[o];
    const te::Program& program = op.access.program();
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      const te::TensorId tensor = program.inputs[k];
      if (op.inputs[k] != kNone || op.access.IsTable(tensor)) continue;
      const te::TensorInfo& info = program.tensors[tensor];
      // A floating-point weight has the width of the results.
      const Tensor& made = graph.tensors[op.outputs[0]];
      const double width = IsFloat(info.dtype) ? static_cast<double>(made.element_bytes) : DTypeBytes(info.dtype);
      of_op[o].push_back(static_cast<int>(weights->size()));
      weights->push_back({static_cast<double>(NumElements(info.shape)) * width, {}, 0, false});
    }
  }
  return of_op;
}

}  // namespace

double WeightBytesFromDdr(const OpGraph& graph, const std::vector<GroupedSubGraph>& sub_graphs,
                          const InstanceGraph& instances, const std::vector<int>& order, double room_bytes) {
  std::vector<Weight> weights;
  const std::vector<std::vector<int>> of_op = WeightsOfOps(graph, &weights);
  std::vector<int> uses;
  for (const int i : order) {
    for (const int op : sub_graphs[instances.instances[i].sub_graph].sub_graph.ops) {
      for (const int weight : of_op[op]) {
        weights[weight].uses.push_back(static_cast<int64_t>(uses.size()));
        uses.push_back(weight);
      }
    }
  }
  double total = 0, used = 0;
  std::set<std::pair<int64_t, int>> here;  // by the next use
  for (const int number : uses) {
    Weight& weight = weights[number];
    if (weight.here) here.erase({weight.NextUse(), number});
    ++weight.next;
    if (!weight.here) total += weight.bytes;
    if (weight.bytes > room_bytes) continue;
    if (!weight.here) used += weight.bytes;
    weight.here = weight.NextUse() != kNever;
    if (weight.here) here.emplace(weight.NextUse(), number);
    if (!weight.here) used -= weight.bytes;
    while (used > room_bytes) {
      const int last = std::prev(here.end())->second;
      here.erase(std::prev(here.end()));
      weights[last].here = false;
      used -= weights[last].bytes;
    }
  }
  return total;
}

}  // namespace fusion::graph_turbo
