#include "compiler/rewrite/work_graph.h"

#include <algorithm>
#include <queue>
#include <set>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/analysis/evaluate.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ops/registry/op_def.h"

namespace fusion::rewrite {
namespace {

// Limits of what the simplification after rewriting folds.
constexpr int64_t kMaxFoldedBytes = 64 << 20;
constexpr double kMaxFoldedFlops = 2e7;
constexpr int64_t kFoldAtOnceElements = 4096;

double FlopsOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
               const std::vector<const ecg::Value*>& outputs) {
  const ops::OpDef* def = ops::FindOp(node.op);
  if (def == nullptr || !def->flops) return 0;
  std::vector<ecg::ValueType> types;
  for (const ecg::Value* value : outputs) types.push_back(value->type);
  return def->flops(ops::OpContext(node.op, node.name, node.attrs, inputs), types);
}

}  // namespace

bool SameAttributes(const ecg::Attributes& a, const ecg::Attributes& b) {
  if (a.all().size() != b.all().size()) return false;
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), [](const auto& x, const auto& y) {
    if (x.first != y.first || x.second.index() != y.second.index()) return false;
    return std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Tensor>) {
            return false;
          } else {
            return value == std::get<T>(y.second);
          }
        },
        x.second);
  });
}

Cost& Cost::operator+=(const Cost& other) {
  flops += other.flops;
  bytes += other.bytes;
  nodes += other.nodes;
  return *this;
}

Cost Cost::operator-(const Cost& other) const {
  return {flops - other.flops, bytes - other.bytes, nodes - other.nodes};
}

Rank RankOf(const Cost& saving, Measure measure) {
  if (measure == Measure::kNodes) return {saving.nodes, saving.bytes, saving.flops};
  return {saving.flops, saving.bytes, saving.nodes};
}

bool IsFolded(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
              const std::vector<const ecg::Value*>& outputs) {
  int64_t bytes = 0;
  for (const ecg::Value* value : outputs) bytes += ecg::ValueBytes(*value);
  return !inputs.empty() && bytes <= kMaxFoldedBytes && FlopsOf(node, inputs, outputs) <= kMaxFoldedFlops;
}

Cost CostOf(const ecg::Node& node, const std::vector<const ecg::Value*>& inputs,
            const std::vector<const ecg::Value*>& outputs, bool known) {
  if (known && IsFolded(node, inputs, outputs)) return {};
  Cost cost{FlopsOf(node, inputs, outputs), 0, 1};
  const std::set<const ecg::Value*> distinct(inputs.begin(), inputs.end());
  for (const ecg::Value* value : distinct) cost.bytes += value == nullptr ? 0 : ecg::ValueBytes(*value);
  for (const ecg::Value* value : outputs) cost.bytes += ecg::ValueBytes(*value);
  return cost;
}

WorkGraph::WorkGraph(const ecg::Graph& source) : source_(source), outputs_(source.outputs()) {
  for (const ecg::Value& value : source.values()) Append(value, value.constant.has_value());
  for (ecg::ValueId id : outputs_) ++output_uses_[id];
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(source.nodes().size()); ++id) {
    nodes_.push_back({source.node(id), true, id});
    const ecg::Node& node = nodes_.back().node;
    bool known = !node.inputs.empty();
    std::vector<const ecg::Value*> inputs, outputs;
    for (ecg::ValueId value : node.inputs) {
      known = known && (value == ecg::kNone || known_[value]);
      inputs.push_back(value == ecg::kNone ? nullptr : &values_[value]);
    }
    for (ecg::ValueId value : node.outputs) outputs.push_back(&values_[value]);
    // A rule that took the reordered constant for a constant (a scale that moves into it) would compute with it at run
    // time, or hold it twice.
    if (!known || !IsFolded(node, inputs, outputs) || ecg::ReordersShared(source, node)) continue;
    for (ecg::ValueId value : node.outputs) known_[value] = true;
  }
}

ecg::ValueId WorkGraph::Append(ecg::Value value, bool known) {
  values_.push_back(std::move(value));
  output_uses_.push_back(0);
  known_.push_back(known);
  return static_cast<ecg::ValueId>(values_.size()) - 1;
}

Cost WorkGraph::NodeCost(ecg::NodeId id) const {
  const ecg::Node& node = nodes_[id].node;
  std::vector<const ecg::Value*> inputs, outputs;
  bool known = true;
  for (ecg::ValueId value : node.inputs) {
    inputs.push_back(value == ecg::kNone ? nullptr : &values_[value]);
    known = known && (value == ecg::kNone || known_[value]);
  }
  for (ecg::ValueId value : node.outputs) outputs.push_back(&values_[value]);
  return CostOf(node, inputs, outputs, known);
}

bool WorkGraph::IsReduced(ecg::ValueId id) const {
  const ecg::NodeId producer = values_[id].producer;
  if (producer == ecg::kNone) return false;
  const ecg::Node& node = nodes_[producer].node;
  const ops::OpDef* def = ops::FindOp(node.op);
  if (def == nullptr || !def->mapping) return false;
  std::vector<const ecg::Value*> inputs;
  for (ecg::ValueId value : node.inputs) inputs.push_back(value == ecg::kNone ? nullptr : &values_[value]);
  const ops::OpContext context(node.op, node.name, node.attrs, inputs);
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    if (inputs[i] != nullptr && def->mapping(context, i) == ops::MappingType::kManyToMany) return true;
  }
  return false;
}

ecg::ValueId WorkGraph::AddValue(ecg::Value value) {
  value.consumers.clear();
  value.producer = ecg::kNone;
  const bool known = value.constant.has_value();
  return Append(std::move(value), known);
}

ecg::NodeId WorkGraph::AddNode(ecg::Node node, std::vector<ecg::ValueId> outputs, std::vector<ecg::ValueType> types,
                               int order) {
  const auto id = static_cast<ecg::NodeId>(nodes_.size());
  bool known = !node.inputs.empty();
  std::vector<const ecg::Value*> input_values, output_values;
  for (ecg::ValueId input : node.inputs) {
    input_values.push_back(input == ecg::kNone ? nullptr : &values_[input]);
    if (input == ecg::kNone) continue;
    values_[input].consumers.push_back(id);
    known = known && known_[input];
  }
  node.outputs = outputs;
  for (size_t i = 0; i < outputs.size(); ++i) {
    ecg::Value& value = values_[outputs[i]];
    value.type = types[i];
    value.producer = id;
    output_values.push_back(&value);
  }
  known = known && IsFolded(node, input_values, output_values);
  for (ecg::ValueId output : outputs) known_[output] = known;
  nodes_.push_back({std::move(node), true, order});
  if (known) FoldIfSmall(id);
  return id;
}

void WorkGraph::FoldIfSmall(ecg::NodeId id) {
  const ecg::Node& node = nodes_[id].node;
  ecg::Graph alone;
  std::vector<ecg::ValueId> inputs;
  std::vector<ecg::ValueType> types;
  for (ecg::ValueId value : node.inputs) {
    if (value == ecg::kNone) {
      inputs.push_back(ecg::kNone);
      continue;
    }
    if (!values_[value].constant.has_value()) return;
    inputs.push_back(alone.AddConstant("", *values_[value].constant));
    if (values_[value].constant->num_elements() > kFoldAtOnceElements) return;
  }
  for (ecg::ValueId value : node.outputs) {
    types.push_back(values_[value].type);
    if (NumElements(types.back().shape) > kFoldAtOnceElements) return;
  }
  alone.AddNode(node.op, node.name, std::move(inputs), node.attrs, std::move(types));
  auto results = ecg::EvaluateNode(alone, alone.node(0));
  if (!results.ok()) return;  // the node stays, and fails where the user sees it
  for (size_t i = 0; i < results->size(); ++i) {
    ecg::Value& value = values_[node.outputs[i]];
    value.constant = std::move((*results)[i]);
    value.producer = ecg::kNone;
  }
  nodes_[id].alive = false;
  for (ecg::ValueId value : node.inputs) {
    if (value == ecg::kNone) continue;
    std::vector<ecg::NodeId>& consumers = values_[value].consumers;
    consumers.erase(std::remove(consumers.begin(), consumers.end(), id), consumers.end());
  }
}

void WorkGraph::Replace(ecg::ValueId from, ecg::ValueId to) {
  std::vector<ecg::NodeId> consumers = std::exchange(values_[from].consumers, {});
  for (ecg::NodeId id : std::set<ecg::NodeId>(consumers.begin(), consumers.end())) {
    std::replace(nodes_[id].node.inputs.begin(), nodes_[id].node.inputs.end(), from, to);
  }
  values_[to].consumers.insert(values_[to].consumers.end(), consumers.begin(), consumers.end());
  std::replace(outputs_.begin(), outputs_.end(), from, to);
  output_uses_[to] += std::exchange(output_uses_[from], 0);
  if (values_[to].name.empty()) values_[to].name = values_[from].name;
  if (values_[from].producer != ecg::kNone) RemoveIfUnused(values_[from].producer);
}

void WorkGraph::RemoveIfUnused(ecg::NodeId root) {
  std::vector<ecg::NodeId> stack{root};
  while (!stack.empty()) {
    const ecg::NodeId id = stack.back();
    stack.pop_back();
    const ecg::Node& node = nodes_[id].node;
    if (!nodes_[id].alive ||
        std::any_of(node.outputs.begin(), node.outputs.end(), [&](ecg::ValueId v) { return Uses(v) != 0; })) {
      continue;
    }
    nodes_[id].alive = false;
    for (ecg::ValueId value : node.inputs) {
      if (value == ecg::kNone) continue;
      std::vector<ecg::NodeId>& consumers = values_[value].consumers;
      consumers.erase(std::remove(consumers.begin(), consumers.end(), id), consumers.end());
      if (values_[value].producer != ecg::kNone) stack.push_back(values_[value].producer);
    }
  }
}

ecg::Graph WorkGraph::Finish() const {
  ecg::Graph graph;
  graph.name = source_.name;
  std::vector<ecg::ValueId> map(values_.size(), ecg::kNone);
  for (ecg::ValueId id : source_.inputs()) map[id] = graph.AddInput(values_[id].name, values_[id].type);

  using Entry = std::pair<int, ecg::NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<int> missing(nodes_.size(), 0);
  for (ecg::NodeId id = 0; id < num_nodes(); ++id) {
    if (!nodes_[id].alive) continue;
    for (ecg::ValueId value : nodes_[id].node.inputs) {
      missing[id] += value != ecg::kNone && values_[value].producer != ecg::kNone;
    }
    if (missing[id] == 0) ready.emplace(nodes_[id].order, id);
  }
  while (!ready.empty()) {
    const ecg::NodeId id = ready.top().second;
    ready.pop();
    const ecg::Node& node = nodes_[id].node;
    std::vector<ecg::ValueId> inputs;
    for (ecg::ValueId value : node.inputs) {
      if (value != ecg::kNone && map[value] == ecg::kNone) {
        map[value] = graph.AddConstant(values_[value].name, *values_[value].constant);
      }
      inputs.push_back(value == ecg::kNone ? ecg::kNone : map[value]);
    }
    std::vector<ecg::ValueType> types;
    std::vector<std::string> names;
    for (ecg::ValueId value : node.outputs) {
      types.push_back(values_[value].type);
      names.push_back(values_[value].name);
    }
    const ecg::NodeId copy =
        graph.AddNode(node.op, node.name, std::move(inputs), node.attrs, std::move(types), std::move(names));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      map[node.outputs[i]] = graph.node(copy).outputs[i];
      for (ecg::NodeId consumer : values_[node.outputs[i]].consumers) {
        if (--missing[consumer] == 0) ready.emplace(nodes_[consumer].order, consumer);
      }
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (map[outputs_[i]] == ecg::kNone) {
      map[outputs_[i]] = graph.AddConstant(values_[outputs_[i]].name, *values_[outputs_[i]].constant);
    }
    ecg::AddOwnOutput(&graph, map[outputs_[i]], source_.output_names()[i]);
  }
  graph.SetOutputExtents(source_.output_extents());
  return graph;
}

}  // namespace fusion::rewrite
