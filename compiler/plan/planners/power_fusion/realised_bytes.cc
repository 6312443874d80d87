#include "compiler/plan/planners/power_fusion/realised_bytes.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/analysis/derived.h"
#include "compiler/cost/caches.h"

namespace fusion::power_fusion {
namespace {

using ecg::NodeId;
using ecg::ValueId;

class Counter {
 public:
  Counter(const ecg::Graph& graph, const std::vector<BasicOperator>& operators, const FusionBlock& fusion_block,
          const FusionBlockAccount& account, const DeviceModel& device)
      : graph_(graph), operators_(operators), device_(device), account_(account) {
    const std::vector<NodeId> members = fusion_block.Members();
    if (account.phase_members.empty()) phases_.push_back(members);
    for (const std::vector<int>& positions : account.phase_members) {
      std::vector<NodeId>& nodes = phases_.emplace_back();
      for (const int position : positions) nodes.push_back(members[position]);
    }
    for (int p = 0; p < static_cast<int>(phases_.size()); ++p) {
      for (const NodeId node : phases_[p]) {
        first_.emplace(node, p);
        last_[node] = p;
      }
    }
    const std::vector<ValueId> live = LiveOut(graph, fusion_block);
    live_.insert(live.begin(), live.end());
  }

  MovedBytes Count() {
    MovedBytes moved;
    moved.phases = static_cast<int>(phases_.size());
    std::set<ValueId> handed;  // from one phase to another
    for (int p = 0; p < moved.phases; ++p) {
      std::map<ValueId, double> read;
      for (const NodeId node : phases_[p]) ReadBy(node, p, &read);
      for (const auto& [value, bytes] : read) {
        moved.read += bytes;
        if (last_.count(graph_.value(value).producer) > 0) handed.insert(value);
      }
    }
    double device_scope = 0;
    std::set<ValueId> written = live_;
    for (const ValueId value : handed) {
      if (written.insert(value).second) device_scope += Bytes(value);
    }
    for (const ValueId value : written) moved.written += Bytes(value);
    const double partial = static_cast<double>(account_.device_scope_bytes) - device_scope;
    if (partial > 0 && splits_) {
      moved.read += partial;
      moved.written += partial;
    }
    return moved;
  }

 private:
  double Bytes(ValueId value) const { return static_cast<double>(ecg::ValueBytes(graph_.value(value))); }
  // A reduction in two phases combines partial results in the second. Anything else is computed again.
  bool Splits(NodeId node) const {
    return operators_[node].kind == BasicKind::kReduce && first_.at(node) != last_.at(node);
  }
  bool MadeIn(NodeId node, int phase) const {
    if (last_.count(node) == 0) return false;
    if (Splits(node)) return last_.at(node) == phase;
    return std::binary_search(phases_[phase].begin(), phases_[phase].end(), node);
  }

  void ReadBy(NodeId node, int phase, std::map<ValueId, double>* read) {
    if (Splits(node)) {
      splits_ = true;
      if (phase != first_.at(node)) return;
    }
    for (const Operand& operand : operators_[node].operands) {
      const ecg::Value& value = graph_.value(operand.value);
      if (value.producer != ecg::kNone && MadeIn(value.producer, phase)) continue;
      double bytes = Bytes(operand.value);
      if (bytes > static_cast<double>(LargestCacheBytes(device_))) {
        // No cache holds it, so that only what is loaded counts.
        bytes = std::min(bytes, operand.loads * static_cast<double>(DTypeBytes(value.type.dtype)));
      }
      double& known = (*read)[operand.value];
      known = std::max(known, bytes);
    }
  }

  const ecg::Graph& graph_;
  const std::vector<BasicOperator>& operators_;
  const DeviceModel& device_;
  const FusionBlockAccount& account_;
  std::vector<std::vector<NodeId>> phases_;
  std::map<NodeId, int> first_, last_;
  std::set<ValueId> live_;
  bool splits_ = false;
};

}  // namespace

MovedBytes RealisedBytes(const ecg::Graph& graph, const std::vector<BasicOperator>& operators,
                         const FusionBlock& fusion_block, const FusionBlockAccount& account,
                         const DeviceModel& device) {
  return Counter(graph, operators, fusion_block, account, device).Count();
}

}  // namespace fusion::power_fusion
