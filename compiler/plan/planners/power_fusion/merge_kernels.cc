#include "compiler/plan/planners/power_fusion/merge_kernels.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/analysis/derived.h"
#include "compiler/plan/planners/power_fusion/realised_bytes.h"
#include "runtime/base/status_macros.h"

namespace fusion::power_fusion {
namespace {

using ecg::NodeId;
using ecg::ValueId;

// Operators of one kernel: each merge schedules all of them anew.
constexpr size_t kMostOperators = 64;
// How often all edges are looked at. Kernels that grew may be merged where smaller ones were not.
constexpr int kMostTurns = 2;

}  // namespace

std::vector<KernelMerger::Edge> KernelMerger::Edges() const {
  std::map<std::pair<NodeId, NodeId>, double> bytes;
  for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
    for (const ValueId v : std::set<ValueId>(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end())) {
      const NodeId producer = v == ecg::kNone ? ecg::kNone : graph_.value(v).producer;
      if (producer == ecg::kNone) continue;
      bytes[{producer, id}] += static_cast<double>(ecg::ValueBytes(graph_.value(v)));
    }
  }
  std::vector<Edge> edges;
  for (const auto& [edge, size] : bytes) edges.push_back({edge.first, edge.second, size});
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.bytes > b.bytes; });
  return edges;
}

std::set<ValueId> KernelMerger::ResultsOf(const std::vector<NodeId>& nodes) const {
  const std::vector<ValueId> live = LiveOut(graph_, FusionBlock(nodes));
  return {live.begin(), live.end()};
}

PlannedKernel& KernelMerger::KernelAt(NodeId node) {
  const NodeId name = quotient_.FusionBlockOf(node);
  const auto known = kernels_.find(name);
  if (known != kernels_.end()) return known->second;
  PlannedKernel& alone = kernels_[name];
  alone.fusion_block = FusionBlock({name});
  alone.ns = oracle_.EstimateNs(graph_, {name});
  return alone;
}

double KernelMerger::GirNs(PlannedKernel* kernel) {
  if (!kernel->gir_ns) {
    const std::vector<NodeId>& nodes = kernel->fusion_block.nodes;
    const MergePlan alone = search_.Fastest(nodes, ResultsOf(nodes));
    kernel->gir_ns = alone.ns;
    kernel->units = alone.gir.units;
  }
  return *kernel->gir_ns;
}

std::vector<HandOver> KernelMerger::AcrossPhases(const Gir& gir) const {
  std::set<HandOver> edges;
  for (const GOperator& op : gir.operators) {
    if (op.kind != GKind::kSync || op.scope != Scope::kDevice) continue;
    const ValueId value = gir.slices[op.writes].value;
    if (value == ecg::kNone) continue;
    const NodeId producer = graph_.value(value).producer;
    const std::vector<NodeId>& readers = graph_.value(value).consumers;
    // A movement may have been merged away between the two.
    if (std::find(readers.begin(), readers.end(), op.op) == readers.end() || producer == op.op) continue;
    edges.insert({producer, op.op, value, Scope::kLane, Scope::kDevice});
  }
  return {edges.begin(), edges.end()};
}

absl::StatusOr<PlannedKernel> KernelMerger::Fit(FusionBlock fusion_block) {
  ASSIGN_OR_RETURN(const FusionBlockAccount account, oracle_.Fit(graph_, fusion_block));
  PlannedKernel kernel;
  kernel.ns = account.estimate_ns;
  const bool known = std::none_of(fusion_block.nodes.begin(), fusion_block.nodes.end(),
                                  [&](NodeId node) { return operators_[node].kind == BasicKind::kOpaque; });
  if (known) kernel.moved = RealisedBytes(graph_, operators_, fusion_block, account, device_);
  kernel.fusion_block = std::move(fusion_block);
  return kernel;
}

absl::StatusOr<PlannedKernel> KernelMerger::KernelOf(const std::vector<NodeId>& nodes) {
  if (nodes.size() == 1) {
    PlannedKernel alone;
    alone.fusion_block = FusionBlock(nodes);
    alone.ns = oracle_.EstimateNs(graph_, nodes);
    return alone;
  }
  return Fit(FusionBlock(nodes));
}

std::string KernelMerger::Try(const Edge& edge) {
  PlannedKernel &producer = KernelAt(edge.producer), &consumer = KernelAt(edge.consumer);
  std::vector<NodeId> nodes = producer.fusion_block.nodes;
  nodes.insert(nodes.end(), consumer.fusion_block.nodes.begin(), consumer.fusion_block.nodes.end());
  std::sort(nodes.begin(), nodes.end());
  if (nodes.size() > kMostOperators) {
    return absl::StrCat(nodes.size(), " operators are too many for one kernel: ", kMostOperators, " is the limit");
  }
  int anchors = 0;
  bool described = true;
  for (const NodeId node : nodes) {
    if (operators_[node].routine) {
      return absl::StrCat(graph_.node(node).op, " '", graph_.node(node).name, "' is a routine");
    }
    anchors += operators_[node].compute_bound ? 1 : 0;
    described &= operators_[node].kind != BasicKind::kOpaque;
  }
  if (anchors > 1) return "both kernels have an operator that is bound by computation";
  if (const NodeId third = quotient_.PathBetween(edge.producer, edge.consumer); third != ecg::kNone) {
    return absl::StrCat("a path between them runs through '", graph_.node(third).name, "' in another kernel");
  }
  const double apart_ns = producer.ns + consumer.ns;
  std::vector<FusionBlock> ways = {FusionBlock(nodes)};
  std::optional<double> gir_ns;
  int64_t gir_units = 0;
  const int units = device_.parallel_units;
  const bool barriers_pay = device_.BarrierSeconds(units) < device_.LaunchSeconds(units);
  if (anchors == 0 && described) {
    const double girs_ns = GirNs(&producer) + GirNs(&consumer);
    std::vector<int64_t> units_of_both = {consumer.units};  // parallel structures must match
    if (producer.units != consumer.units) units_of_both.push_back(producer.units);
    const MergePlan merged = search_.Fastest(nodes, ResultsOf(nodes), units_of_both);
    gir_ns = merged.ns;
    gir_units = merged.gir.units;
    if (merged.ns >= girs_ns) {
      return absl::StrFormat("the merged GIR-Graph is modelled at %.2f us against %.2f us apart", merged.ns / 1e3,
                             girs_ns / 1e3);
    }
    if (barriers_pay) {
      FusionBlock phases(nodes);
      phases.inner = AcrossPhases(merged.gir);
      if (!phases.inner.empty()) ways.push_back(std::move(phases));
    }
  }
  std::optional<PlannedKernel> best;
  std::string refusal;
  for (FusionBlock& way : ways) {
    absl::StatusOr<PlannedKernel> fitting = Fit(way);
    if (!fitting.ok() && anchors == 0) {
      // With every hand-over named at the scopes that it has, the schedule accepts fewer tasks than the device has
      // units, and the estimate says what idle units cost.
      way.inner = InnerHandOvers(graph_, way);
      absl::StatusOr<PlannedKernel> named = Fit(way);
      if (!named.ok() && barriers_pay) {
        // The schedule may need phases that GIR does not see (a product that wants a grid of its own). Then any
        // hand-over may cross a barrier.
        for (HandOver& hand_over : way.inner) hand_over.furthest = Scope::kDevice;
        named = Fit(way);
      }
      if (named.ok()) fitting = std::move(named);
    }
    if (!fitting.ok()) {
      refusal = std::string(fitting.status().message());
    } else if (!best || fitting->ns < best->ns) {
      best = *std::move(fitting);
    }
  }
  if (!best) return refusal;
  if (best->ns > apart_ns) {
    return absl::StrFormat("estimated %.2f us as one kernel against %.2f us apart", best->ns / 1e3, apart_ns / 1e3);
  }
  best->gir_ns = gir_ns;
  best->units = gir_units;
  kernels_.erase(quotient_.FusionBlockOf(edge.producer));
  kernels_.erase(quotient_.FusionBlockOf(edge.consumer));
  quotient_.Contract(edge.producer, edge.consumer);
  kernels_[quotient_.FusionBlockOf(edge.producer)] = *std::move(best);
  return "";
}

absl::Status KernelMerger::Run() {
  const std::vector<Edge> edges = Edges();
  // The sizes of the kernels with which an edge was refused: kernels only grow, so equal sizes are the same kernels.
  std::map<std::pair<NodeId, NodeId>, std::pair<size_t, size_t>> tried;
  bool merged = true;
  for (int turn = 0; merged && turn < kMostTurns; ++turn) {
    merged = false;
    for (size_t e = 0; e < edges.size(); ++e) {
      if (options_.cancelled && options_.cancelled()) return absl::CancelledError("planning was cancelled");
      if (options_.progress && turn == 0) {
        options_.progress(static_cast<int64_t>(e), static_cast<int64_t>(edges.size()));
      }
      const Edge& edge = edges[e];
      if (quotient_.Together(edge.producer, edge.consumer)) continue;
      const std::pair sizes(quotient_.Members(edge.producer).size(), quotient_.Members(edge.consumer).size());
      const std::pair name(edge.producer, edge.consumer);
      if (const auto before = tried.find(name); before != tried.end() && before->second == sizes) continue;
      std::string why = Try(edge);
      if (why.empty()) {
        merged = true;
        refused_.erase(name);
      } else {
        tried[name] = sizes;
        refused_[name] = std::move(why);
      }
    }
  }
  return absl::OkStatus();
}

std::vector<PlannedKernel> KernelMerger::Kernels() {
  std::vector<PlannedKernel> kernels;
  for (const std::vector<NodeId>& nodes : quotient_.FusionBlocks()) kernels.push_back(KernelAt(nodes[0]));
  return kernels;
}

const std::string& KernelMerger::Refusal(NodeId producer, NodeId consumer) const {
  static const std::string* const kNone = new std::string("their kernels were not merged");
  const auto refused = refused_.find({producer, consumer});
  return refused != refused_.end() ? refused->second : *kNone;
}

}  // namespace fusion::power_fusion
