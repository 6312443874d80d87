#include "compiler/analysis/permuted_reads.h"

#include <algorithm>

#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::ecg {
namespace {

// The axis that walks a dimension of this extent from end to end by itself, -1: the index is anything else.
int AxisOf(const te::Index& index, int64_t extent) {
  if (index.constant() != 0 || index.parts().size() != 1) return -1;
  const te::Index::Part& part = index.parts()[0];
  const bool whole = part.term.kind == te::TermKind::kAxis && part.coefficient == 1 && part.term.axis.extent == extent;
  return whole ? part.term.axis.id : -1;
}

class Reader {
 public:
  Reader(const Graph& graph, const ops::LoweredFusionBlock& node)
      : graph_(graph), node_(node), permuted_(node.program.tensors.size(), -1) {}

  bool Run(ValueId value, int axis) {
    for (size_t t = 0; t < node_.value_of_tensor.size(); ++t) {
      if (node_.value_of_tensor[t] == value) permuted_[t] = axis;
    }
    // The second pass meets constants that an expression reads before another one permutes them.
    for (int pass = 0; pass < 2; ++pass) {
      for (const te::Te& te : node_.program.tes) {
        if (!Read(te)) return false;
      }
    }
    return true;
  }

  int DimensionOf(te::TensorId tensor) const { return permuted_[tensor]; }
  const std::map<ValueId, int>& constants() const { return constants_; }

 private:
  template <typename F>
  static void VisitNodes(const te::Te& te, const F& f) {
    te::VisitScalars(te, [&](const te::Scalar& root) { te::Visit(root, f); });
  }

  int AxisIn(const te::ScalarNode& load, int dimension) const {
    return AxisOf(load.indices[dimension], node_.program.tensors[load.tensor].shape[dimension]);
  }

  // Marks what the expression permutes. False where it cannot.
  bool Read(const te::Te& te) {
    if (te.routine) {
      return std::none_of(te.routine->inputs.begin(), te.routine->inputs.end(),
                          [&](te::TensorId tensor) { return permuted_[tensor] >= 0; });
    }
    int along = -1;  // the expression's axis along which slices are permuted
    bool fits = true;
    VisitNodes(te, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad || permuted_[node.tensor] < 0) return;
      const int axis = AxisIn(node, permuted_[node.tensor]);
      fits = fits && axis >= 0 && (along < 0 || along == axis);
      along = axis;
    });
    if (!fits) return false;
    if (along < 0) {
      return std::all_of(te.outputs.begin(), te.outputs.end(), [&](te::TensorId t) { return permuted_[t] < 0; });
    }
    VisitNodes(te, [&](const te::ScalarNode& node) { fits = fits && ReadsAlong(node, along); });
    return fits && MarkOutputs(te, along);
  }

  // Does the node use the axis only to find slices of what is permuted?
  bool ReadsAlong(const te::ScalarNode& node, int along) {
    const auto uses = [&](const te::Index& index) { return index.UsesAxis(along); };
    if (node.kind == te::ScalarKind::kFromIndex && uses(node.index)) return false;
    if (std::any_of(node.pred.begin(), node.pred.end(),
                    [&](const te::Comparison& c) { return uses(c.lhs) || uses(c.rhs); })) {
      return false;
    }
    if (node.kind != te::ScalarKind::kLoad) return true;
    for (size_t d = 0; d < node.indices.size(); ++d) {
      if (!uses(node.indices[d]) || permuted_[node.tensor] == static_cast<int>(d)) continue;
      if (permuted_[node.tensor] >= 0 || AxisIn(node, static_cast<int>(d)) != along) return false;
      const ValueId value = node_.value_of_tensor[node.tensor];
      if (value == kNone || !graph_.value(value).constant || graph_.value(value).opaque) return false;
      permuted_[node.tensor] = static_cast<int>(d);
      constants_[value] = static_cast<int>(d);
    }
    return permuted_[node.tensor] < 0 || AxisIn(node, permuted_[node.tensor]) == along;
  }

  bool MarkOutputs(const te::Te& te, int along) {
    const auto is_along = [&](const te::Axis& axis) { return axis.id == along; };
    if (te.reduction) {
      for (const te::Comparison& c : te.reduction->pred) {
        if (c.lhs.UsesAxis(along) || c.rhs.UsesAxis(along)) return false;
      }
      if (std::any_of(te.reduction->axes.begin(), te.reduction->axes.end(), is_along)) {
        return te.reduction->kind != te::ReductionKind::kGeneral;
      }
    }
    const auto spatial = std::find_if(te.axes.begin(), te.axes.end(), is_along);
    if (spatial == te.axes.end()) return false;
    for (te::TensorId output : te.outputs) permuted_[output] = static_cast<int>(spatial - te.axes.begin());
    return true;
  }

  const Graph& graph_;
  const ops::LoweredFusionBlock& node_;
  std::vector<int> permuted_;  // by tensor: the dimension, -1: none
  std::map<ValueId, int> constants_;
};

}  // namespace

bool PermutedReads::KeepsOutputs() const {
  return std::all_of(outputs.begin(), outputs.end(), [](int dimension) { return dimension < 0; });
}

std::optional<PermutedReads> PermuteReads(const Graph& graph, NodeId id, ValueId value, int axis) {
  const Node& node = graph.node(id);
  if (ops::IsLoopBoundary(node)) return std::nullopt;
  const auto lowered = ops::LowerNodes(graph, {id}, node.outputs);
  if (!lowered.ok()) return std::nullopt;
  Reader reader(graph, *lowered);
  if (!reader.Run(value, axis)) return std::nullopt;
  PermutedReads reads{reader.constants(), {}};
  for (ValueId output : node.outputs) {
    const auto tensor = std::find(lowered->value_of_tensor.begin(), lowered->value_of_tensor.end(), output);
    if (tensor == lowered->value_of_tensor.end()) return std::nullopt;
    reads.outputs.push_back(reader.DimensionOf(static_cast<te::TensorId>(tensor - lowered->value_of_tensor.begin())));
  }
  return reads;
}

}  // namespace fusion::ecg
