#include "compiler/analysis/evaluate.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/transform.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {
namespace {

constexpr int64_t kMaxTypeOnlyElements = 64;  // results of Shape and Size have at most as many elements as the rank

// A graph of `node` alone: constants stay constants, other inputs become graph inputs.
struct Single {
  Graph graph;
  std::vector<ValueId> original;  // by id in `graph`: its inputs and constants, which come before the outputs
};

Single Isolate(const Graph& graph, const Node& node) {
  Single single;
  std::vector<ValueId> inputs;
  for (ValueId id : node.inputs) {
    if (id == kNone) {
      inputs.push_back(kNone);
      continue;
    }
    const Value& value = graph.value(id);
    inputs.push_back(value.constant.has_value() ? single.graph.AddConstant(value.name, *value.constant)
                                                : single.graph.AddInput(value.name, value.type));
    single.original.push_back(id);
  }
  std::vector<ValueType> types;
  for (ValueId id : node.outputs) types.push_back(graph.value(id).type);
  single.graph.AddNode(node.op, node.name, std::move(inputs), node.attrs, std::move(types));
  return single;
}

absl::StatusOr<ops::LoweredFusionBlock> Lower(const Single& single) {
  return ops::LowerNodes(single.graph, {0}, single.graph.node(0).outputs);
}

// Does the map copy `in` to `out` element by element in row-major order?
bool IsCopy(const te::Te& te, const te::Scalar& body, const te::Program& program, te::TensorId out) {
  if (!te.IsMap() || body->kind != te::ScalarKind::kLoad || body->pad != nullptr) return false;
  const te::TensorInfo& from = program.tensors[body->tensor];
  const te::TensorInfo& to = program.tensors[out];
  if (from.dtype != to.dtype || NumElements(from.shape) != NumElements(to.shape)) return false;
  // An axis of extent 1 is always 0, however the index is written.
  const te::Index zero;
  const auto drop_unit = [&](const te::Axis& axis) { return axis.extent == 1 ? &zero : nullptr; };
  std::vector<te::Index> axes, indices;
  Shape extents;
  for (const te::Axis& axis : te.axes) {
    axes.push_back(te::Substitute(axis, drop_unit));
    extents.push_back(axis.extent);
  }
  for (const te::Index& index : body->indices) indices.push_back(te::Substitute(index, drop_unit));
  return extents == to.shape && te::Linearize(indices, from.shape) == te::Linearize(axes, extents);
}

// See AliasesOf; returns values of `single.original`.
std::vector<ValueId> Aliases(const Single& single, const ops::LoweredFusionBlock& lowered) {
  const te::Program& program = lowered.program;
  std::vector<ValueId> result;
  for (te::TensorId out : program.outputs) {
    te::TensorId at = out;
    for (int te_id = program.DefiningTe(at); te_id >= 0; te_id = program.DefiningTe(at)) {
      const te::Te& te = program.tes[te_id];
      const auto position = std::find(te.outputs.begin(), te.outputs.end(), at) - te.outputs.begin();
      if (!te.IsMap() || position >= static_cast<std::ptrdiff_t>(te.body.size())) return {};
      const te::Scalar& body = te.body[position];
      if (!IsCopy(te, body, program, at)) return {};
      at = body->tensor;
    }
    const ValueId value =
        at < static_cast<te::TensorId>(lowered.value_of_tensor.size()) ? lowered.value_of_tensor[at] : kNone;
    if (value == kNone || single.graph.value(value).producer != kNone) return {};
    result.push_back(value);
  }
  return result;
}

}  // namespace

bool IsFoldable(const Graph& graph, const Node& node, const FoldLimits& limits) {
  if (ops::IsLoopBoundary(node)) return false;
  if (node.inputs.empty() && ops::FindOp(node.op) == nullptr) return false;
  int64_t bytes = 0;
  bool small_integers = true;
  for (ValueId id : node.outputs) {
    const Value& value = graph.value(id);
    bytes += ValueBytes(value);
    small_integers =
        small_integers && !IsFloat(value.type.dtype) && NumElements(value.type.shape) <= kMaxTypeOnlyElements;
  }
  if (bytes > limits.output_bytes) return false;
  if (bytes == 0) return true;
  const bool all_constant = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNone || graph.value(id).constant.has_value();
  });
  if (all_constant) return ops::NodeFlops(graph, node) <= limits.flops;
  if (!small_integers) return false;
  auto lowered = Lower(Isolate(graph, node));
  if (!lowered.ok()) return false;
  te::RemoveDead(&lowered->program);
  std::set<te::TensorId> loads;
  for (const te::Te& te : lowered->program.tes) {
    te::VisitTensors(te, [&](te::TensorId tensor) { loads.insert(tensor); });
  }
  return std::none_of(loads.begin(), loads.end(),
                      [&](te::TensorId id) { return lowered->program.tensors[id].role == te::Role::kInput; });
}

bool OnlyWidens(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId out) {
    const ValueType& wide = graph.value(out).type;
    const int64_t elements = NumElements(wide.shape);
    if (elements < 2 || !IsFloat(wide.dtype)) return false;
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
      if (in == kNone || !graph.value(in).constant.has_value()) return false;
      const ValueType& narrow = graph.value(in).type;
      return IsInteger(narrow.dtype) && DTypeBytes(narrow.dtype) <= 2 && NumElements(narrow.shape) == elements &&
             DTypeBytes(narrow.dtype) < DTypeBytes(wide.dtype);
    });
  });
}

bool OnlyReorders(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || ops::IsLoopBoundary(node) || !AliasesOf(graph, node).empty()) return false;
  const Single single = Isolate(graph, node);
  auto lowered = Lower(single);
  if (!lowered.ok() || lowered->program.tes.size() != 1) return false;
  const te::Program& program = lowered->program;
  const te::Te& te = program.tes[0];
  if (!te.IsMap() || te.body.size() != 1 || te.body[0]->kind != te::ScalarKind::kLoad || te.body[0]->pad) return false;
  // Each axis must be an index of its own; otherwise an element would be read twice.
  std::set<int> axes;
  for (const te::Index& index : te.body[0]->indices) {
    for (const te::Axis& axis : te.axes) {
      int64_t step = 0;
      if (index.AffineIn(axis.id, &step) && step != 0 && index == te::Index(axis)) axes.insert(axis.id);
    }
  }
  int64_t elements = 1;
  for (const te::Axis& axis : te.axes) elements *= axes.count(axis.id) > 0 ? axis.extent : 1;
  return elements == NumElements(program.tensors[te.body[0]->tensor].shape) &&
         elements == NumElements(graph.value(node.outputs[0]).type.shape);
}

bool ReordersShared(const Graph& graph, const Node& node) {
  constexpr int64_t kLeastBytes = 1 << 20;  // what a second copy of a smaller constant takes does not matter
  const bool of_shared = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId in) {
    if (in == kNone || !graph.value(in).constant || ValueBytes(graph.value(in)) <= kLeastBytes) return false;
    return graph.value(in).consumers.size() > 1 || graph.IsOutput(in);
  });
  return of_shared && OnlyReorders(graph, node);
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(const Graph& graph, const Node& node) {
  std::vector<Tensor> empty;
  for (ValueId id : node.outputs) {
    const Value& value = graph.value(id);
    if (ValueBytes(value) == 0) empty.emplace_back(value.type.dtype, value.type.shape);
  }
  if (empty.size() == node.outputs.size()) return empty;
  const Single single = Isolate(graph, node);
  ASSIGN_OR_RETURN(ops::LoweredFusionBlock lowered, Lower(single));
  const std::vector<ValueId> aliases = Aliases(single, lowered);
  if (!aliases.empty() && std::all_of(aliases.begin(), aliases.end(),
                                      [&](ValueId id) { return single.graph.value(id).constant.has_value(); })) {
    std::vector<Tensor> results;
    for (size_t i = 0; i < aliases.size(); ++i) {
      results.push_back(single.graph.value(aliases[i]).constant->Reshaped(graph.value(node.outputs[i]).type.shape));
    }
    return results;
  }
  te::RemoveDead(&lowered.program);  // drops expressions that no result needs: they might read inputs without a value
  std::vector<Tensor> inputs;
  for (te::TensorId id : lowered.program.inputs) {
    const te::TensorInfo& info = lowered.program.tensors[id];
    const ValueId value =
        id < static_cast<te::TensorId>(lowered.value_of_tensor.size()) ? lowered.value_of_tensor[id] : kNone;
    if (value != kNone && single.graph.value(value).constant.has_value()) {
      inputs.push_back(*single.graph.value(value).constant);
    } else {
      // Never read (IsFoldable). A typed tensor without memory passes the interpreter's type check.
      inputs.push_back(info.constant.has_value() ? Tensor() : Tensor(info.dtype, info.shape, nullptr, nullptr));
    }
  }
  return te::Interpret(lowered.program, inputs);
}

std::vector<ValueId> AliasesOf(const Graph& graph, const Node& node) {
  if (ops::IsLoopBoundary(node)) return {};
  for (ValueId id : node.outputs) {
    const ValueType& out = graph.value(id).type;
    const bool matches_an_input = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
      if (input == kNone) return false;
      const ValueType& in = graph.value(input).type;
      return in.dtype == out.dtype && NumElements(in.shape) == NumElements(out.shape);
    });
    if (!matches_an_input) return {};
  }
  const Single single = Isolate(graph, node);
  auto lowered = Lower(single);
  if (!lowered.ok()) return {};
  std::vector<ValueId> result = Aliases(single, *lowered);
  for (ValueId& id : result) id = single.original[id];
  return result;
}

}  // namespace fusion::ecg
