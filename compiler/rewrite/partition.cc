#include "compiler/rewrite/partition.h"

#include <map>
#include <numeric>

#include "compiler/ops/registry/op_def.h"

namespace fusion::rewrite {
namespace {

void CollectOps(const Term& term, std::set<std::string>* ops) {
  ops->insert(term.ops.begin(), term.ops.end());
  for (const Term& arg : term.args) CollectOps(arg, ops);
}

}  // namespace

std::set<std::string> OpsOf(const std::vector<const Rule*>& rules) {
  std::set<std::string> ops;
  for (const Rule* rule : rules) CollectOps(rule->pattern, &ops);
  return ops;
}

std::vector<std::vector<ecg::NodeId>> Partition(const WorkGraph& graph, const std::set<std::string>& pattern_ops) {
  std::map<std::string, bool> by_op;
  const auto takes_part = [&](ecg::NodeId id) {
    const std::string& op = graph.node(id).op;
    const auto [it, is_new] = by_op.emplace(op, false);
    if (is_new) {
      const ops::OpDef* def = ops::FindOp(op);
      const ops::MathProperties math = def == nullptr ? ops::MathProperties{} : def->math;
      it->second = math.associative || math.commutative || math.distributive || pattern_ops.count(op) != 0;
    }
    return it->second;
  };

  std::vector<ecg::NodeId> parent(graph.num_nodes());
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&](ecg::NodeId id) {
    while (parent[id] != id) id = parent[id] = parent[parent[id]];
    return id;
  };
  for (ecg::NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.IsAlive(id) || !takes_part(id)) continue;
    for (ecg::ValueId input : graph.node(id).inputs) {
      const ecg::NodeId producer = input == ecg::kNone ? ecg::kNone : graph.value(input).producer;
      if (producer != ecg::kNone && takes_part(producer)) parent[find(id)] = find(producer);
    }
  }
  std::vector<std::vector<ecg::NodeId>> partitions;
  std::map<ecg::NodeId, size_t> index;
  for (ecg::NodeId id = 0; id < graph.num_nodes(); ++id) {
    if (!graph.IsAlive(id) || !takes_part(id)) continue;
    const auto [it, is_new] = index.emplace(find(id), partitions.size());
    if (is_new) partitions.emplace_back();
    partitions[it->second].push_back(id);
  }
  return partitions;
}

}  // namespace fusion::rewrite
