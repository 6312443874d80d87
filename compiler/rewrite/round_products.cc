#include "compiler/rewrite/round_products.h"

#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ecg/rewriter.h"
#include "compiler/ecg/rounded.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/rewrite/ranges.h"
#include "compiler/rewrite/work_graph.h"
#include "compiler/te/ranges/contractions.h"

namespace fusion::rewrite {
namespace {

class Search {
 public:
  explicit Search(const ecg::Graph& graph) : graph_(graph), work_(graph), ranges_(work_) {}

  // Returns the nodes to mark.
  std::set<ecg::NodeId> Run() {
    for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph_.nodes().size()); ++id) {
      if (!ReadsProduct(graph_.node(id))) continue;
      const ops::LoweredFusionBlock* const lowered = LoweredOf(id);
      if (lowered == nullptr) continue;
      for (const te::Addend& addend : te::AddendsOf(lowered->program)) {
        const ecg::ValueId value = lowered->value_of_tensor[addend.input];
        if (value == ecg::kNone || !MayBeProduct(value)) continue;
        if (te::CanBringBack(RangesIn(id), addend)) Mark(value);
      }
    }
    return std::move(marked_);
  }

 private:
  bool ReadsProduct(const ecg::Node& node) {
    bool reads = false;
    for (const ecg::ValueId input : node.inputs) reads = reads || (input != ecg::kNone && MayBeProduct(input));
    return reads;
  }

  // Returns null where the node has no lowering (the ends of a loop).
  const ops::LoweredFusionBlock* LoweredOf(ecg::NodeId id) {
    const auto [it, is_new] = lowered_.try_emplace(id);
    if (is_new) {
      auto lowered = ops::LowerNodes(graph_, {id}, graph_.node(id).outputs);
      if (lowered.ok()) it->second = std::make_unique<ops::LoweredFusionBlock>(*std::move(lowered));
    }
    return it->second.get();
  }

  // The ranges of the node's expressions, which only candidates need: they look at everything above the node.
  const te::ExpressionRanges& RangesIn(ecg::NodeId id) {
    const auto found = ranges_in_.find(id);
    if (found != ranges_in_.end()) return found->second;
    const ops::LoweredFusionBlock& lowered = *LoweredOf(id);
    std::vector<std::optional<te::TensorRanges>> inputs;
    for (const te::TensorId tensor : lowered.program.inputs) {
      const ecg::ValueId value = lowered.value_of_tensor[tensor];
      inputs.push_back(value == ecg::kNone ? std::nullopt : std::optional(te::TensorRanges{ranges_.Of(value)}));
    }
    return ranges_in_.emplace(id, te::ExpressionRanges(lowered.program, inputs)).first->second;
  }

  const te::LastOperation& LastOf(ecg::ValueId value) {
    const auto [it, is_new] = last_.try_emplace(value);
    if (!is_new) return it->second;
    const ecg::NodeId producer = graph_.value(value).producer;
    if (producer == ecg::kNone) return it->second;
    const ops::LoweredFusionBlock* const lowered = LoweredOf(producer);
    if (lowered == nullptr) return it->second;
    for (size_t t = 0; t < lowered->value_of_tensor.size(); ++t) {
      if (lowered->value_of_tensor[t] != value) continue;
      return it->second = te::LastOperationOf(lowered->program, static_cast<te::TensorId>(t));
    }
    return it->second;
  }

  // Returns the values of which an element of `value` can be one as it stands.
  std::vector<ecg::ValueId> Sources(ecg::ValueId value) {
    std::vector<ecg::ValueId> sources;
    for (const te::TensorId input : LastOf(value).inputs) {
      const ecg::ValueId source = LoweredOf(graph_.value(value).producer)->value_of_tensor[input];
      if (source != ecg::kNone) sources.push_back(source);
    }
    return sources;
  }

  // Can an element be a product, whatever its range is?
  bool MayBeProduct(ecg::ValueId value) {
    if (const auto it = may_be_product_.find(value); it != may_be_product_.end()) return it->second;
    bool may = !LastOf(value).products.empty();
    for (const ecg::ValueId source : Sources(value)) may = may || MayBeProduct(source);
    return may_be_product_[value] = may;
  }

  // Marks the nodes whose products elements of `value` can be.
  void Mark(ecg::ValueId value) {
    if (!seen_.insert(value).second || !MayBeProduct(value)) return;
    const ecg::NodeId producer = graph_.value(value).producer;
    for (const te::LastOperation::Product& product : LastOf(value).products) {
      if (te::CanOverflow(RangesIn(producer), product)) marked_.insert(producer);
    }
    for (const ecg::ValueId source : Sources(value)) Mark(source);
  }

  const ecg::Graph& graph_;
  const WorkGraph work_;
  Ranges ranges_;
  std::unordered_map<ecg::NodeId, std::unique_ptr<ops::LoweredFusionBlock>> lowered_;
  std::unordered_map<ecg::NodeId, te::ExpressionRanges> ranges_in_;
  std::unordered_map<ecg::ValueId, te::LastOperation> last_;
  std::unordered_map<ecg::ValueId, bool> may_be_product_;
  std::set<ecg::ValueId> seen_;
  std::set<ecg::NodeId> marked_;
};

}  // namespace

ecg::Graph RoundProducts(const ecg::Graph& graph) {
  const std::set<ecg::NodeId> marked = Search(graph).Run();
  if (marked.empty()) return graph;
  ecg::Rewriter rewriter(graph);
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph.nodes().size()); ++id) {
    ecg::Node node = graph.node(id);
    if (marked.count(id) > 0) node.attrs.Set(ecg::kRounded, int64_t{1});
    rewriter.Copy(node);
  }
  return rewriter.Finish();
}

}  // namespace fusion::rewrite
