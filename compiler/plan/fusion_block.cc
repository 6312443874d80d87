#include "compiler/plan/fusion_block.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace fusion {

std::vector<ecg::NodeId> FusionBlock::Members() const {
  std::vector<ecg::NodeId> members;
  std::merge(nodes.begin(), nodes.end(), recomputed.begin(), recomputed.end(), std::back_inserter(members));
  return members;
}

std::vector<HandOver> InnerHandOvers(const ecg::Graph& graph, const FusionBlock& fusion_block) {
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  std::vector<HandOver> result;
  for (ecg::NodeId consumer : members) {
    std::set<ecg::ValueId> seen;
    for (ecg::ValueId value : graph.node(consumer).inputs) {
      if (value == ecg::kNone || !seen.insert(value).second) continue;
      const ecg::NodeId producer = graph.value(value).producer;
      if (producer == ecg::kNone || !std::binary_search(members.begin(), members.end(), producer)) continue;
      const auto asked = std::find_if(
          fusion_block.inner.begin(), fusion_block.inner.end(),
          [&](const HandOver& hand_over) { return hand_over.consumer == consumer && hand_over.value == value; });
      result.push_back(asked == fusion_block.inner.end() ? HandOver{producer, consumer, value} : *asked);
    }
  }
  return result;
}

std::vector<ecg::ValueId> LiveOut(const ecg::Graph& graph, const FusionBlock& fusion_block) {
  const std::vector<ecg::NodeId> inside = fusion_block.Members();
  std::vector<ecg::ValueId> live;
  for (ecg::NodeId id : fusion_block.nodes) {
    for (ecg::ValueId v : graph.node(id).outputs) {
      if (v == ecg::kNone) continue;
      const std::vector<ecg::NodeId>& consumers = graph.value(v).consumers;
      const bool outside = !std::binary_search(fusion_block.unread.begin(), fusion_block.unread.end(), v) &&
                           std::any_of(consumers.begin(), consumers.end(), [&](ecg::NodeId c) {
                             return !std::binary_search(inside.begin(), inside.end(), c);
                           });
      const bool kept = std::binary_search(fusion_block.kept.begin(), fusion_block.kept.end(), v);
      if (outside || kept || graph.IsOutput(v)) live.push_back(v);
    }
  }
  return live;
}

}  // namespace fusion
