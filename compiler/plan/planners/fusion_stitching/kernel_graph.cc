#include "compiler/plan/planners/fusion_stitching/kernel_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "compiler/analysis/derived.h"
#include "compiler/plan/planners/fusion_stitching/locality.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using ecg::ValueId;

bool Contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

// The pieces of each value that the vertex reads: along every path from where it is read to the root.
std::map<ValueId, int64_t> PiecesOf(const ecg::Graph& graph, const std::vector<NodeId>& members,
                                    const std::vector<std::map<ValueId, int64_t>>& by_node) {
  std::map<NodeId, int64_t> to_root;  // 0 for the root
  std::map<ValueId, int64_t> read;
  for (auto it = members.rbegin(); it != members.rend(); ++it) {
    const int64_t behind = to_root[*it];
    for (const auto& [value, pieces] : by_node[*it]) {
      if (pieces == 0) continue;
      const NodeId producer = graph.value(value).producer;
      int64_t& common = Contains(members, producer) ? to_root[producer] : read[value];
      common = CommonPieces(common, CommonPieces(pieces, behind));
    }
  }
  return read;
}

}  // namespace

absl::StatusOr<KernelGraph> KernelGraph::Make(const ecg::Graph& graph, const std::vector<OperatorTraits>& traits,
                                              const FusionPlan& plan, FusionOracle& oracle,
                                              const PlanOptions& options) {
  std::vector<std::map<ValueId, int64_t>> pieces;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    if (options.cancelled && options.cancelled()) return absl::CancelledError("planning was cancelled");
    pieces.push_back(PiecesByOperand(graph, id));
  }
  KernelGraph made;
  std::map<ValueId, int> stored_by;
  for (const FusionBlock& fusion_block : plan.fusion_blocks) {
    if (options.cancelled && options.cancelled()) return absl::CancelledError("planning was cancelled");
    const int v = made.size();
    Vertex& vertex = made.vertices_.emplace_back();
    vertex.members = fusion_block.Members();
    std::vector<OperatorTraits> of_members;
    for (NodeId id : vertex.members) of_members.push_back(traits[id]);
    vertex.memory_intensive = IsMemoryIntensive(of_members);
    const absl::StatusOr<FusionBlockAccount> fit = oracle.Fit(graph, fusion_block);
    vertex.estimate_ns = fit.ok() ? fit->estimate_ns : oracle.EstimateNs(graph, fusion_block.nodes);
    if (fit.ok()) vertex.tasks = std::max<int64_t>(1, fit->tasks);
    const std::map<ValueId, int64_t> of_reads = PiecesOf(graph, vertex.members, pieces);
    std::set<ValueId> seen;
    for (NodeId id : vertex.members) {
      for (ValueId value : graph.node(id).inputs) {
        if (value == ecg::kNone || !seen.insert(value).second) continue;
        const NodeId producer = graph.value(value).producer;
        if (producer != ecg::kNone && Contains(vertex.members, producer)) continue;
        ReadValue& read = vertex.reads.emplace_back();
        read.value = value;
        read.bytes = ecg::ValueBytes(graph.value(value));
        if (const auto it = of_reads.find(value); it != of_reads.end()) read.pieces = it->second;
        const auto by = stored_by.find(value);
        if (by == stored_by.end()) continue;
        read.producer = by->second;
        vertex.producers.push_back(by->second);
        Vertex& from = made.vertices_[by->second];
        for (StoredValue& stored : from.stores) {
          if (stored.value == value) stored.readers.push_back(v);
        }
        if (from.consumers.empty() || from.consumers.back() != v) from.consumers.push_back(v);
      }
    }
    std::sort(vertex.producers.begin(), vertex.producers.end());
    vertex.producers.erase(std::unique(vertex.producers.begin(), vertex.producers.end()), vertex.producers.end());
    for (ValueId value : LiveOut(graph, fusion_block)) {
      StoredValue& stored = vertex.stores.emplace_back();
      stored.value = value;
      stored.bytes = ecg::ValueBytes(graph.value(value));
      stored.returned = graph.IsOutput(value);
      stored_by[value] = v;
      vertex.result_elements = std::max(vertex.result_elements, NumElements(graph.value(value).type.shape));
    }
  }
  made.marked_.assign(made.vertices_.size(), 0);
  return made;
}

std::vector<int> KernelGraph::Closure(const std::vector<int>& pattern) const {
  if (pattern.size() < 2) return pattern;
  const int reached = ++question_, leads_back = ++question_;
  const int last = pattern.back();
  std::vector<int> outside;
  const auto inside = [&](int v) { return std::binary_search(pattern.begin(), pattern.end(), v); };
  const auto reach = [&](int from) {
    for (int consumer : vertices_[from].consumers) {
      if (consumer > last || marked_[consumer] == reached || inside(consumer)) continue;
      marked_[consumer] = reached;
      outside.push_back(consumer);
    }
  };
  for (int v : pattern) reach(v);
  for (size_t i = 0; i < outside.size(); ++i) reach(outside[i]);
  std::sort(outside.begin(), outside.end(), std::greater<>());
  std::vector<int> closed = pattern;
  for (int v : outside) {
    const std::vector<int>& consumers = vertices_[v].consumers;
    const bool back = std::any_of(consumers.begin(), consumers.end(),
                                  [&](int consumer) { return inside(consumer) || marked_[consumer] == leads_back; });
    if (!back) continue;
    marked_[v] = leads_back;
    closed.push_back(v);
  }
  std::sort(closed.begin(), closed.end());
  return closed;
}

bool KernelGraph::IsConvex(const std::vector<int>& pattern) const { return Closure(pattern).size() == pattern.size(); }

std::vector<NodeId> KernelGraph::Nodes(const std::vector<int>& pattern) const {
  std::vector<NodeId> nodes;
  for (int v : pattern) nodes.insert(nodes.end(), vertices_[v].members.begin(), vertices_[v].members.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

}  // namespace fusion
