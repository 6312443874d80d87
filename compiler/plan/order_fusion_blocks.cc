#include "compiler/plan/order_fusion_blocks.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace fusion {

std::optional<std::vector<FusionBlock>> OrderFusionBlocks(const ecg::Graph& graph,
                                                          std::vector<FusionBlock> fusion_blocks) {
  std::vector<int> owner(graph.nodes().size(), -1);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    for (const ecg::NodeId id : fusion_blocks[b].nodes) owner[id] = static_cast<int>(b);
  }
  std::vector<std::vector<int>> readers(fusion_blocks.size());
  std::vector<int> waits(fusion_blocks.size(), 0);
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    const std::vector<ecg::NodeId> members = fusion_blocks[b].Members();
    std::vector<int> before;
    for (const ecg::NodeId id : members) {
      for (const ecg::ValueId v : graph.node(id).inputs) {
        const ecg::NodeId producer = v == ecg::kNone ? ecg::kNone : graph.value(v).producer;
        if (producer == ecg::kNone || std::binary_search(members.begin(), members.end(), producer)) continue;
        before.push_back(owner[producer]);
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    waits[b] = static_cast<int>(before.size());
    for (const int other : before) readers[other].push_back(static_cast<int>(b));
  }
  using Ready = std::pair<ecg::NodeId, int>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t b = 0; b < fusion_blocks.size(); ++b) {
    if (waits[b] == 0) ready.emplace(fusion_blocks[b].nodes.front(), static_cast<int>(b));
  }
  std::vector<FusionBlock> ordered;
  while (!ready.empty()) {
    const int b = ready.top().second;
    ready.pop();
    for (const int reader : readers[b]) {
      if (--waits[reader] == 0) ready.emplace(fusion_blocks[reader].nodes.front(), reader);
    }
    ordered.push_back(std::move(fusion_blocks[b]));
  }
  if (ordered.size() != readers.size()) return std::nullopt;
  return ordered;
}

}  // namespace fusion
