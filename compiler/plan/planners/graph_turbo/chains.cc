#include "compiler/plan/planners/graph_turbo/chains.h"

#include <algorithm>
#include <utility>

#include "compiler/cost/caches.h"
#include "compiler/plan/planners/graph_turbo/depth_first_plan.h"
#include "compiler/plan/planners/graph_turbo/group.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

using ecg::NodeId;
using ecg::ValueId;

class ChainFinder {
 public:
  ChainFinder(const ecg::Graph& graph, const FusionPlan& plan, const DeviceModel& device)
      : graph_(graph), plan_(plan), device_(device), owner_(graph.nodes().size(), 0) {
    for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
      for (const NodeId id : plan.fusion_blocks[b].nodes) owner_[static_cast<size_t>(id)] = b;
    }
  }

  absl::StatusOr<std::vector<Chain>> Run() {
    std::vector<bool> wanted(plan_.fusion_blocks.size(), false);
    ForEachHandOver([&](size_t producer, size_t consumer, ValueId value) {
      if (LeavesPrivateCache(BytesOf(value), device_)) wanted[producer] = wanted[consumer] = true;
    });
    std::vector<size_t> layers;  // parallel to the operators of the graph of layers
    std::vector<std::vector<NodeId>> nodes;
    for (size_t b = 0; b < wanted.size(); ++b) {
      if (!wanted[b] || !IsExpression(plan_.fusion_blocks[b])) continue;
      layers.push_back(b);
      nodes.push_back(plan_.fusion_blocks[b].nodes);
    }
    ASSIGN_OR_RETURN(OpGraph ops, MakeOpGraph(graph_, nodes, OpGraphOptions()));
    MarkReadElsewhere(layers, &ops);
    const Cluster core;
    const SplitLimits limits{(1 - core.weights_share) * static_cast<double>(LargestPrivateBytes(device_)),
                             core.recomputation};
    std::vector<Chain> chains;
    for (const GroupedSubGraph& grouped : GroupSubGraphs(ops, limits, GroupRules{.wherever_fits = true}).sub_graphs) {
      if (grouped.sub_graph.ops.size() < 2) continue;
      Chain& chain = chains.emplace_back();
      for (const int op : grouped.sub_graph.ops) chain.layers.push_back(layers[static_cast<size_t>(op)]);
    }
    NoteBeyond(&chains);
    return chains;
  }

 private:
  double BytesOf(ValueId value) const {
    const ecg::Value& v = graph_.value(value);
    return static_cast<double>(NumElements(v.type.shape) * DTypeBytes(v.type.dtype));
  }

  // `visit(producer, consumer, value)` for every value that one kernel hands to another.
  template <typename Visit>
  void ForEachHandOver(const Visit& visit) const {
    for (NodeId id = 0; id < static_cast<NodeId>(owner_.size()); ++id) {
      for (const ValueId value : graph_.node(id).inputs) {
        const NodeId producer = value == ecg::kNone ? ecg::kNone : graph_.value(value).producer;
        if (producer == ecg::kNone) continue;
        const size_t from = owner_[static_cast<size_t>(producer)], to = owner_[static_cast<size_t>(id)];
        if (from != to) visit(from, to, value);
      }
    }
  }

  // Can the kernel be a layer? What no expression describes is computed as a whole.
  bool IsExpression(const FusionBlock& fusion_block) const {
    if (fusion_block != FusionBlock(fusion_block.nodes) || LiveOut(graph_, fusion_block).empty()) return false;
    const absl::StatusOr<OpGraph> alone = MakeOpGraph(graph_, {fusion_block.nodes}, OpGraphOptions());
    if (!alone.ok()) return false;
    const std::vector<te::Te>& tes = alone->ops[0].access.program().tes;
    return std::none_of(tes.begin(), tes.end(), [](const te::Te& te) { return te.routine.has_value(); });
  }

  // A value that a kernel reads which is no layer has to exist as a whole.
  void MarkReadElsewhere(const std::vector<size_t>& layers, OpGraph* ops) const {
    std::vector<bool> elsewhere(graph_.values().size(), false);
    ForEachHandOver([&](size_t, size_t consumer, ValueId value) {
      if (!std::binary_search(layers.begin(), layers.end(), consumer)) elsewhere[static_cast<size_t>(value)] = true;
    });
    for (Tensor& tensor : ops->tensors) {
      if (elsewhere[static_cast<size_t>(tensor.value)]) tensor.model_output = true;
    }
  }

  void NoteBeyond(std::vector<Chain>* chains) const {
    constexpr size_t kNoChain = static_cast<size_t>(-1);
    std::vector<size_t> chain_of(plan_.fusion_blocks.size(), kNoChain);
    for (size_t c = 0; c < chains->size(); ++c) {
      for (const size_t layer : (*chains)[c].layers) chain_of[layer] = c;
    }
    ForEachHandOver([&](size_t producer, size_t consumer, ValueId value) {
      const size_t c = chain_of[consumer];
      if (c == kNoChain || chain_of[producer] != c || !LeavesPrivateCache(BytesOf(value), device_)) return;
      Chain& chain = (*chains)[c];
      const auto at = [&](size_t layer) {
        return static_cast<size_t>(std::find(chain.layers.begin(), chain.layers.end(), layer) - chain.layers.begin());
      };
      chain.beyond.emplace_back(at(producer), at(consumer));
    });
  }

  const ecg::Graph& graph_;
  const FusionPlan& plan_;
  const DeviceModel& device_;
  std::vector<size_t> owner_;  // by node: its fusion block
};

}  // namespace

absl::StatusOr<std::vector<Chain>> ChainsOf(const ecg::Graph& graph, const FusionPlan& plan,
                                            const DeviceModel& device) {
  if (LargestPrivateBytes(device) == 0 || device.WorkItemsAreLanes()) return std::vector<Chain>();
  return ChainFinder(graph, plan, device).Run();
}

}  // namespace fusion::graph_turbo
