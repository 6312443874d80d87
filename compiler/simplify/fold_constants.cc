#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/analysis/derived.h"
#include "compiler/analysis/evaluate.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

constexpr int64_t kAlwaysBytes = 1 << 20;  // a value up to this size is folded whatever it came from (attention masks)
constexpr int64_t kMaxBytes = 64 << 20;
constexpr double kMaxFlops = 2e7;  // the interpreter executes about 10^7 operations a second

ecg::FoldLimits LimitsFor(const ecg::Graph& graph, const std::vector<ecg::ValueId>& inputs) {
  int64_t bytes = 0;
  for (ecg::ValueId id : inputs) {
    if (id != ecg::kNone && graph.value(id).constant.has_value()) bytes += ecg::ValueBytes(graph.value(id));
  }
  return {.output_bytes = std::min(kMaxBytes, std::max(kAlwaysBytes, 2 * bytes)), .flops = kMaxFlops};
}

}  // namespace

ecg::Graph FoldConstants(const ecg::Graph& graph, Widening widening, Reordering reordering) {
  ecg::Rewriter rewriter(graph);
  for (const ecg::Node& node : graph.nodes()) {
    // The inputs in the new graph count, because they may have become constants in this sweep. The node is examined in
    // a graph of its own, so that the new graph holds only what stays.
    const std::vector<ecg::ValueId> inputs = rewriter.MapInputs(node);
    ecg::Graph alone;
    std::vector<ecg::ValueId> alone_inputs;
    for (ecg::ValueId id : inputs) {
      if (id == ecg::kNone) {
        alone_inputs.push_back(ecg::kNone);
        continue;
      }
      const ecg::Value& value = rewriter.graph()->value(id);
      alone_inputs.push_back(value.constant.has_value() ? alone.AddConstant(value.name, *value.constant)
                                                        : alone.AddInput(value.name, value.type));
    }
    std::vector<ecg::ValueType> types;
    for (ecg::ValueId id : node.outputs) types.push_back(graph.value(id).type);
    const ecg::FoldLimits limits = LimitsFor(alone, alone_inputs);
    const ecg::NodeId id = alone.AddNode(node.op, node.name, std::move(alone_inputs), node.attrs, std::move(types));
    const bool stays = std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ecg::ValueId value) { return graph.IsOutputWithExtents(value); });
    const bool narrow = widening == Widening::kKeep && ecg::OnlyWidens(alone, alone.node(id));
    const bool twice = reordering == Reordering::kHoldOnce && ecg::ReordersShared(graph, node);
    if (!stays && !narrow && !twice && ecg::IsFoldable(alone, alone.node(id), limits)) {
      // A node that cannot be evaluated (an index out of range) stays and fails where the user can see it.
      if (auto values = ecg::EvaluateNode(alone, alone.node(id)); values.ok()) {
        for (size_t i = 0; i < values->size(); ++i) {
          const ecg::ValueId old = node.outputs[i];
          rewriter.Bind(old, rewriter.graph()->AddConstant(graph.value(old).name, std::move((*values)[i])));
        }
        continue;
      }
    }
    rewriter.CopyWith(node, inputs);
  }
  return RemoveDead(rewriter.Finish());  // drops the operands of folded nodes
}

}  // namespace fusion::simplify
