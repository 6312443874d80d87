#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compiler/ecg/rewriter.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/expression.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/simplify/passes.h"
#include "compiler/te/program/strided_read.h"
#include "compiler/te/program/transform.h"

namespace fusion::simplify {
namespace {

class Merger {
 public:
  explicit Merger(const ecg::Graph& graph) : graph_(graph) {}

  // The node's result as one read of another value; nothing where it is none.
  struct Read {
    ops::Expression expression;
    ecg::ValueId source = ecg::kNone;
  };
  std::optional<Read> ReadOf(ecg::NodeId id) {
    const ecg::Node& node = graph_.node(id);
    if (static_cast<int64_t>(node.inputs.size()) < te::kLeastPieces || node.outputs.size() != 1 ||
        ops::IsLoopBoundary(node)) {
      return std::nullopt;
    }
    const std::optional<ecg::ValueId> source = CommonSource(node);
    if (!source) return std::nullopt;
    std::set<ecg::NodeId> between;  // node numbers are a topological order
    for (const ecg::ValueId input : node.inputs) {
      for (ecg::ValueId value = input; value != *source; value = MovedFrom(value)) {
        between.insert(graph_.value(value).producer);
      }
    }
    between.insert(id);
    absl::StatusOr<ops::LoweredFusionBlock> lowered =
        ops::LowerNodes(graph_, {between.begin(), between.end()}, node.outputs);
    if (!lowered.ok()) return std::nullopt;
    te::Program& program = lowered->program;
    te::RemoveDead(&program);  // other results of these nodes
    for (te::TensorId tensor = 0; tensor < static_cast<te::TensorId>(program.tensors.size()); ++tensor) {
      if (program.DefiningTe(tensor) < 0 || tensor == program.outputs[0]) continue;
      if (!te::Inline(&program, tensor).ok()) return std::nullopt;
    }
    if (program.tes.size() != 1 || !program.tes[0].IsMap()) return std::nullopt;
    te::Te& te = program.tes[0];
    te.body[0] = te::AsStridedRead(te.body[0], te.axes);
    if (te.body[0] == nullptr) return std::nullopt;
    return Read{ops::ToExpression(program, te), *source};
  }

 private:
  // Returns the value whose elements this one has in other places, or some of them; kNone: it is computed, chosen, or
  // read at a place that is known at run time only.
  ecg::ValueId MovedFrom(ecg::ValueId value) {
    const ecg::NodeId id = graph_.value(value).producer;
    if (id == ecg::kNone) return ecg::kNone;
    const auto [known, fresh] = moved_from_.emplace(value, ecg::kNone);
    if (!fresh || ops::IsLoopBoundary(graph_.node(id))) return known->second;
    absl::StatusOr<ops::LoweredFusionBlock> lowered = ops::LowerNodes(graph_, {id}, {value});
    if (!lowered.ok()) return ecg::kNone;
    te::RemoveDead(&lowered->program);
    const std::vector<te::Te>& tes = lowered->program.tes;
    if (tes.size() != 1 || !tes[0].IsMap() || tes[0].outputs.size() != 1) return ecg::kNone;
    const te::Scalar& body = tes[0].body[0];
    if (body->kind != te::ScalarKind::kLoad || body->pad != nullptr) return ecg::kNone;
    for (const te::Index& index : body->indices) {
      if (index.HasLoad()) return ecg::kNone;
    }
    return known->second = lowered->value_of_tensor[body->tensor];
  }

  // The value nearest to the inputs of which all of them have elements, and nothing else.
  std::optional<ecg::ValueId> CommonSource(const ecg::Node& node) {
    std::vector<ecg::ValueId> candidates;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ecg::kNone) return std::nullopt;
      std::vector<ecg::ValueId> sources;
      for (ecg::ValueId value = node.inputs[i]; value != ecg::kNone; value = MovedFrom(value)) {
        sources.push_back(value);
      }
      if (i == 0) candidates = sources;
      std::erase_if(candidates, [&](ecg::ValueId value) {
        return std::find(sources.begin(), sources.end(), value) == sources.end();
      });
    }
    if (candidates.empty() || graph_.value(candidates[0]).constant) return std::nullopt;
    return candidates[0];
  }

  const ecg::Graph& graph_;
  std::map<ecg::ValueId, ecg::ValueId> moved_from_;
};

}  // namespace

ecg::Graph MergeSlices(const ecg::Graph& graph) {
  Merger merger(graph);
  ecg::Rewriter rewriter(graph);
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph.nodes().size()); ++id) {
    const ecg::Node& node = graph.node(id);
    std::optional<Merger::Read> read = merger.ReadOf(id);
    if (!read) {
      rewriter.Copy(node);
      continue;
    }
    const ecg::Value& result = graph.value(node.outputs[0]);
    ecg::Attributes attrs;
    attrs.Set(ops::kExpressionText, std::move(read->expression.text));
    const ecg::NodeId made = rewriter.graph()->AddNode(ops::kExpression, node.name, {rewriter.Map(read->source)},
                                                       std::move(attrs), {result.type}, {result.name});
    rewriter.Bind(node.outputs[0], rewriter.graph()->node(made).outputs[0]);
  }
  return RemoveDead(rewriter.Finish());
}

}  // namespace fusion::simplify
