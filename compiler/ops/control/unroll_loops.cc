#include "compiler/ops/control/unroll_loops.h"

#include <algorithm>
#include <numeric>

#include "compiler/ecg/rewriter.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/control/loop.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {
namespace {

class Unroller {
 public:
  Unroller(const Graph& graph, const Loops& loops) : graph_(graph), loops_(loops), rewriter_(graph) {}

  Graph Run() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      const Node& node = graph_.node(id);
      if (loops_.of_node[id] == Loops::kOnce) {
        rewriter_.Copy(node);
      } else if (node.op == ops::kLoopEnd) {
        WriteOut(id);
      }
    }
    return rewriter_.Finish();
  }

 private:
  // All nodes of the body stand between the two boundaries, and what they read from outside stands before LoopEnd.
  void WriteOut(NodeId end_id) {
    const auto loop =
        std::find_if(loops_.list.begin(), loops_.list.end(), [&](const Loop& l) { return l.end == end_id; });
    const int index = static_cast<int>(loop - loops_.list.begin());
    const Node &begin = graph_.node(loop->begin), &end = graph_.node(end_id);
    const ops::LoopForm in = ops::LoopFormOf(begin), out = ops::LoopFormOf(end);
    const auto carried = static_cast<size_t>(loop->carried);
    std::vector<ValueId> state;
    for (size_t k = 0; k < carried; ++k) state.push_back(rewriter_.Map(begin.inputs[k]));
    std::vector<std::vector<ValueId>> slices, stacks(out.reversed.size());
    for (size_t k = 0; k < in.reversed.size(); ++k) {
      slices.push_back(Slices(rewriter_.Map(begin.inputs[carried + k]), loop->trips));
      if (in.reversed[k] != 0) std::reverse(slices.back().begin(), slices.back().end());
    }
    for (int64_t t = 0; t < loop->trips; ++t) {
      for (size_t k = 0; k < carried; ++k) rewriter_.Bind(begin.outputs[k], state[k]);
      for (size_t k = 0; k < slices.size(); ++k) {
        rewriter_.Bind(begin.outputs[carried + k], slices[k][static_cast<size_t>(t)]);
      }
      for (NodeId id = loop->begin + 1; id < end_id; ++id) {
        if (loops_.of_node[id] == index) rewriter_.Copy(graph_.node(id));
      }
      for (size_t k = 0; k < carried; ++k) state[k] = rewriter_.Map(end.inputs[1 + k]);
      for (size_t k = 0; k < stacks.size(); ++k) stacks[k].push_back(rewriter_.Map(end.inputs[1 + carried + k]));
    }
    for (size_t k = 0; k < carried; ++k) rewriter_.Bind(end.outputs[k], state[k]);
    for (size_t k = 0; k < stacks.size(); ++k) {
      if (out.reversed[k] != 0) std::reverse(stacks[k].begin(), stacks[k].end());
      rewriter_.Bind(end.outputs[carried + k], Stack(stacks[k]));
    }
  }

  ValueId Reshape(ValueId value, const Shape& shape) {
    Graph* graph = rewriter_.graph();
    const ValueType type{graph->value(value).type.dtype, shape};
    if (graph->value(value).type.shape == shape) return value;
    const ValueId extents =
        graph->AddConstant("", Tensor::From<int64_t>(DType::kI64, {static_cast<int64_t>(shape.size())}, shape));
    Attributes attrs;
    // Otherwise an extent of 0 means the operand's.
    if (NumElements(shape) == 0) attrs.Set("allowzero", int64_t{1});
    return graph->node(graph->AddNode("Reshape", "", {value, extents}, std::move(attrs), {type})).outputs[0];
  }

  // [trips, d0, …] → trips values [d0, …]
  std::vector<ValueId> Slices(ValueId whole, int64_t trips) {
    Graph* graph = rewriter_.graph();
    const ValueType type = graph->value(whole).type;
    const Shape slice(type.shape.begin() + 1, type.shape.end());
    Shape rows = slice;
    if (rows.empty()) rows = {1};
    Shape joined = rows;
    joined[0] *= trips;
    if (trips == 1) return {Reshape(whole, slice)};
    Attributes attrs;
    attrs.Set("axis", int64_t{0});
    const NodeId split = graph->AddNode("Split", "", {Reshape(whole, joined)}, std::move(attrs),
                                        std::vector<ValueType>(static_cast<size_t>(trips), {type.dtype, rows}));
    std::vector<ValueId> parts = graph->node(split).outputs;
    for (ValueId& part : parts) part = Reshape(part, slice);
    return parts;
  }

  ValueId Stack(std::vector<ValueId> parts) {
    Graph* graph = rewriter_.graph();
    const ValueType type = graph->value(parts[0]).type;
    Shape rows = type.shape, stacked = type.shape;
    if (rows.empty()) rows = {1};
    stacked.insert(stacked.begin(), static_cast<int64_t>(parts.size()));
    for (ValueId& part : parts) part = Reshape(part, rows);
    if (parts.size() == 1) return Reshape(parts[0], stacked);
    rows[0] *= static_cast<int64_t>(parts.size());
    Attributes attrs;
    attrs.Set("axis", int64_t{0});
    const NodeId concat = graph->AddNode("Concat", "", std::move(parts), std::move(attrs), {{type.dtype, rows}});
    return Reshape(graph->node(concat).outputs[0], stacked);
  }

  const Graph& graph_;
  const Loops& loops_;
  Rewriter rewriter_;
};

}  // namespace

absl::StatusOr<Graph> UnrollLoops(const Graph& graph) {
  ASSIGN_OR_RETURN(const Loops loops, FindLoops(graph));
  if (loops.empty()) return graph;
  return Unroller(graph, loops).Run();
}

}  // namespace fusion::ecg
