#include "compiler/plan/cover.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using ecg::NodeId;
using Sets = std::vector<std::vector<NodeId>>;

bool Contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

std::string Name(const ecg::Graph& graph, NodeId id) {
  return absl::StrCat(graph.node(id).op, " '", graph.node(id).name, "'");
}

// The sets that hold each node, ascending.
std::vector<std::vector<size_t>> Holders(const ecg::Graph& graph, const Sets& sets) {
  std::vector<std::vector<size_t>> holders(graph.nodes().size());
  for (size_t s = 0; s < sets.size(); ++s) {
    for (NodeId id : sets[s]) holders[id].push_back(s);
  }
  return holders;
}

absl::StatusOr<std::vector<size_t>> OrderOf(const ecg::Graph& graph, const Sets& sets,
                                            const std::vector<std::vector<size_t>>& holders) {
  std::vector<std::vector<size_t>> readers(sets.size());
  std::vector<size_t> waits_for(sets.size(), 0);
  for (size_t s = 0; s < sets.size(); ++s) {
    std::vector<size_t> before;
    for (NodeId id : sets[s]) {
      for (ecg::ValueId v : graph.node(id).inputs) {
        const NodeId producer = v == ecg::kNone ? ecg::kNone : graph.value(v).producer;
        if (producer == ecg::kNone || Contains(sets[s], producer)) continue;
        if (holders[producer].size() != 1) {
          return absl::InternalError(absl::StrCat(Name(graph, id), " reads ", Name(graph, producer), ", which ",
                                                  holders[producer].size(), " fusion blocks compute"));
        }
        before.push_back(holders[producer][0]);
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    waits_for[s] = before.size();
    for (size_t b : before) readers[b].push_back(s);
  }
  using Ready = std::pair<NodeId, size_t>;  // the set's last node
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t s = 0; s < sets.size(); ++s) {
    if (waits_for[s] == 0) ready.emplace(sets[s].back(), s);
  }
  std::vector<size_t> order;
  while (!ready.empty()) {
    const size_t s = ready.top().second;
    ready.pop();
    order.push_back(s);
    for (size_t reader : readers[s]) {
      if (--waits_for[reader] == 0) ready.emplace(sets[reader].back(), reader);
    }
  }
  if (order.size() == sets.size()) return order;
  const auto stuck = std::find_if(waits_for.begin(), waits_for.end(), [](size_t n) { return n > 0; });
  return absl::InternalError(absl::StrCat("fusion blocks close a cycle through ",
                                          Name(graph, sets[static_cast<size_t>(stuck - waits_for.begin())].front())));
}

// Does some set read the value without holding its producer?
bool IsStored(const ecg::Graph& graph, const Sets& sets, const std::vector<std::vector<size_t>>& holders,
              ecg::ValueId v) {
  const ecg::Value& value = graph.value(v);
  if (graph.IsOutput(v)) return true;
  return std::any_of(value.consumers.begin(), value.consumers.end(), [&](NodeId consumer) {
    return std::any_of(holders[consumer].begin(), holders[consumer].end(),
                       [&](size_t s) { return !Contains(sets[s], value.producer); });
  });
}

}  // namespace

absl::StatusOr<std::vector<FusionBlock>> FusionBlocksOfCover(const ecg::Graph& graph, const Sets& sets) {
  const std::vector<std::vector<size_t>> holders = Holders(graph, sets);
  ASSIGN_OR_RETURN(const std::vector<size_t> order, OrderOf(graph, sets, holders));
  std::vector<bool> owned(graph.nodes().size(), false);
  std::vector<FusionBlock> fusion_blocks;
  for (size_t s : order) {
    FusionBlock& fusion_block = fusion_blocks.emplace_back();
    for (NodeId id : sets[s]) {
      (owned[id] ? fusion_block.recomputed : fusion_block.nodes).push_back(id);
      if (owned[id]) continue;
      owned[id] = true;
      for (ecg::ValueId v : graph.node(id).outputs) {
        if (v == ecg::kNone || graph.IsOutput(v)) continue;
        const std::vector<NodeId>& readers = graph.value(v).consumers;
        const bool inside =
            std::all_of(readers.begin(), readers.end(), [&](NodeId reader) { return Contains(sets[s], reader); });
        const bool stored = IsStored(graph, sets, holders, v);
        if (stored && inside) fusion_block.kept.push_back(v);
        if (!stored && !inside) fusion_block.unread.push_back(v);
      }
    }
    std::sort(fusion_block.unread.begin(), fusion_block.unread.end());
    std::sort(fusion_block.kept.begin(), fusion_block.kept.end());
    if (fusion_block.nodes.empty()) {
      return absl::InternalError(absl::StrCat("a fusion block computes nothing but what others do: ",
                                              Name(graph, fusion_block.recomputed.front())));
    }
  }
  return fusion_blocks;
}

}  // namespace fusion
