#include "compiler/analysis/slices.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ops/control/loop.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/program/transform.h"

namespace fusion::ecg {
namespace {

constexpr int64_t kMostSlices = 4096;
constexpr size_t kLongestChain = 128;     // nodes
constexpr size_t kLargestBody = 1 << 14;  // nodes of the expression that a chain becomes

// Is the scalar an element of some tensor of the type that is no constant, chosen by tests of indices alone?
bool IsElement(const te::Scalar& s, const te::Program& program, DType dtype) {
  bool element = true;
  te::Visit(s, [&](const te::ScalarNode& node) {
    const bool load = node.kind == te::ScalarKind::kLoad && node.pad == nullptr;
    element = element && (load || node.kind == te::ScalarKind::kIf) && node.dtype == dtype;
    element = element && (!load || program.tensors[node.tensor].role != te::Role::kConstant);
    for (const te::Comparison& c : node.pred) element = element && !c.lhs.HasLoad() && !c.rhs.HasLoad();
  });
  return element;
}

// The value of an index, where that is known: tables of indices are constants of the program.
std::optional<int64_t> ValueOf(const te::Index& index, const te::Program& program) {
  int64_t value = index.constant();
  for (const te::Index::Part& part : index.parts()) {
    const te::TensorInfo* table = part.term.kind == te::TermKind::kLoad ? &program.tensors[part.term.tensor] : nullptr;
    if (table == nullptr || !table->constant || IsFloat(table->dtype)) return std::nullopt;
    int64_t at = 0;
    for (size_t d = 0; d < part.term.indices.size(); ++d) {
      const std::optional<int64_t> coordinate = ValueOf(part.term.indices[d], program);
      if (!coordinate || *coordinate < 0 || *coordinate >= table->shape[d]) return std::nullopt;
      at = at * table->shape[d] + *coordinate;
    }
    value += part.coefficient * table->constant->GetInt(at);
  }
  return value;
}

// Collects the nodes of the chain that makes `value`. False where there are none, or too many.
bool CollectChain(const Graph& graph, ValueId value, SliceFinder* finder, std::set<NodeId>* chain) {
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const NodeId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (producer == kNone || !finder->Moves(producer) || !chain->insert(producer).second) continue;
    if (chain->size() > kLongestChain) return false;
    for (ValueId input : graph.node(producer).inputs) {
      if (input != kNone) open.push_back(input);
    }
  }
  return !chain->empty();
}

// Makes the chain one expression.
bool InlineAll(te::Program* program) {
  te::RemoveDead(program);
  while (program->tes.size() > 1) {
    const te::Te& first = program->tes.front();
    if (first.outputs.size() != 1) return false;
    if (!te::Inline(program, te::TensorId{first.outputs[0]}).ok()) return false;
    size_t nodes = 0;
    for (const te::Te& te : program->tes) {
      te::VisitScalars(te, [&](const te::Scalar& root) { te::Visit(root, [&](const te::ScalarNode&) { ++nodes; }); });
    }
    if (nodes > kLargestBody) return false;
  }
  return program->tes.size() == 1 && program->tes[0].outputs.size() == 1 && program->tes[0].body.size() == 1;
}

// The slices along one axis of the expression's result.
std::optional<Slices> SlicesAlong(const ops::LoweredFusionBlock& chain, int axis, const Shape& shape,
                                  const Graph& graph) {
  const te::Te& te = chain.program.tes[0];
  const te::Index zero(0);
  Slices result{axis, {}};
  for (int64_t k = 0; k < shape[axis]; ++k) {
    const te::Index at(k);
    const te::Scalar body = te::Substitute(te.body[0], [&](const te::Axis& a) -> const te::Index* {
      return a.id == te.axes[axis].id ? &at : a.extent == 1 ? &zero : nullptr;
    });
    if (body->kind != te::ScalarKind::kLoad || body->indices.size() != shape.size()) return std::nullopt;
    const ValueId value = chain.value_of_tensor[body->tensor];
    if (value == kNone || graph.value(value).constant) return std::nullopt;
    Shape like = graph.value(value).type.shape;
    const std::optional<int64_t> source = ValueOf(body->indices[axis], chain.program);
    if (like.size() != shape.size() || !source) return std::nullopt;
    like[axis] = shape[axis];
    if (like != shape) return std::nullopt;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (static_cast<int>(d) == axis) continue;
      const te::Index own = shape[d] == 1 ? zero : te::Index(te.axes[d]);
      if (!(body->indices[d] == own)) return std::nullopt;
    }
    result.slices.push_back({value, *source});
  }
  return result;
}

}  // namespace

bool SliceFinder::Moves(NodeId id) {
  const auto [known, fresh] = moves_.emplace(id, false);
  if (!fresh) return known->second;
  const Node& node = graph_.node(id);
  if (ops::IsLoopBoundary(node)) return false;
  const auto lowered = ops::LowerNodes(graph_, {id}, node.outputs);
  if (!lowered.ok()) return false;
  const te::Program& program = lowered->program;
  bool moves = true;
  for (const te::Te& te : program.tes) {
    moves = moves && te.IsMap();
    for (size_t o = 0; moves && o < te.outputs.size(); ++o) {
      moves = IsElement(te.body[o], program, program.tensors[te.outputs[o]].dtype);
    }
  }
  return moves_[id] = moves;
}

std::optional<Slices> SliceFinder::SlicesOf(ValueId value) {
  const Shape& shape = graph_.value(value).type.shape;
  std::set<NodeId> chain;
  if (NumElements(shape) == 0 || !CollectChain(graph_, value, this, &chain)) return std::nullopt;
  auto lowered = ops::LowerNodes(graph_, {chain.begin(), chain.end()}, {value});
  if (!lowered.ok() || !InlineAll(&lowered->program)) return std::nullopt;
  for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis) {
    if (shape[axis] < 2 || shape[axis] > kMostSlices) continue;
    std::optional<Slices> slices = SlicesAlong(*lowered, axis, shape, graph_);
    if (slices) return slices;
  }
  return std::nullopt;
}

}  // namespace fusion::ecg
