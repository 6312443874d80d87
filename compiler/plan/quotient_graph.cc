#include "compiler/plan/quotient_graph.h"

#include <algorithm>
#include <numeric>

namespace fusion {

QuotientGraph::QuotientGraph(const ecg::Graph& graph) {
  const int n = static_cast<int>(graph.nodes().size());
  successors_.resize(n);
  predecessors_.resize(n);
  members_.resize(n);
  marked_.assign(n, 0);
  for (std::vector<int>* identity : {&fusion_block_of_, &rank_, &order_}) {
    identity->resize(n);
    std::iota(identity->begin(), identity->end(), 0);
  }
  for (ecg::NodeId id = 0; id < n; ++id) {
    members_[id] = {id};
    for (ecg::ValueId v : graph.node(id).inputs) {
      if (v != ecg::kNone && graph.value(v).producer != ecg::kNone)
        predecessors_[id].push_back(graph.value(v).producer);
    }
    std::vector<ecg::NodeId>& found = predecessors_[id];
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    for (ecg::NodeId producer : found) successors_[producer].push_back(id);
  }
}

void QuotientGraph::MarkReachable(int from, int to) {
  ++question_;
  std::vector<int> stack = {from};
  while (!stack.empty()) {
    const int fusion_block = stack.back();
    stack.pop_back();
    for (ecg::NodeId node : members_[fusion_block]) {
      for (ecg::NodeId next : successors_[node]) {
        const int target = fusion_block_of_[next];
        if (target == from || rank_[target] >= rank_[to] || marked_[target] == question_) continue;
        marked_[target] = question_;
        stack.push_back(target);
      }
    }
  }
}

ecg::NodeId QuotientGraph::PathBetween(ecg::NodeId producer, ecg::NodeId consumer) {
  const int from = fusion_block_of_[producer], to = fusion_block_of_[consumer];
  MarkReachable(from, to);
  for (ecg::NodeId node : members_[to]) {
    for (ecg::NodeId before : predecessors_[node]) {
      if (marked_[fusion_block_of_[before]] == question_) return before;
    }
  }
  return ecg::kNone;
}

void QuotientGraph::Contract(ecg::NodeId producer, ecg::NodeId consumer) {
  const int from = fusion_block_of_[producer], to = fusion_block_of_[consumer];
  MarkReachable(from, to);
  // Reorders the part between the two ranks: first what the producer's fusion block does not reach, then the contracted
  // fusion block, then what it reaches.
  const int begin = rank_[from], end = rank_[to];
  std::vector<int> before, after;
  for (int r = begin + 1; r < end; ++r) {
    if (order_[r] != ecg::kNone) (marked_[order_[r]] == question_ ? after : before).push_back(order_[r]);
  }
  const int kept = members_[from].size() >= members_[to].size() ? from : to;
  const int gone = kept == from ? to : from;
  for (ecg::NodeId node : members_[gone]) fusion_block_of_[node] = kept;
  members_[kept].insert(members_[kept].end(), members_[gone].begin(), members_[gone].end());
  members_[gone].clear();
  int r = begin;
  auto place = [&](int fusion_block) {
    order_[r] = fusion_block;
    rank_[fusion_block] = r++;
  };
  for (int fusion_block : before) place(fusion_block);
  place(kept);
  for (int fusion_block : after) place(fusion_block);
  while (r <= end) order_[r++] = ecg::kNone;
}

std::vector<std::vector<ecg::NodeId>> QuotientGraph::FusionBlocks() const {
  std::vector<std::vector<ecg::NodeId>> fusion_blocks;
  for (int fusion_block : order_) {
    if (fusion_block == ecg::kNone) continue;
    fusion_blocks.push_back(members_[fusion_block]);
    std::sort(fusion_blocks.back().begin(), fusion_blocks.back().end());
  }
  return fusion_blocks;
}

}  // namespace fusion
