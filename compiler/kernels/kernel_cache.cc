#include "compiler/kernels/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/kernels/block_signature.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/pressure.h"

namespace fusion {
namespace {

// Returns the reason with the names of values `from[i]`, where it quotes them, replaced by those of `to[i]`.
std::string Renamed(const ecg::Graph& graph, const std::string& reason, const std::vector<ecg::ValueId>& from,
                    const std::vector<ecg::ValueId>& to) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < from.size(); ++i) {
    names.emplace(absl::StrCat("'", graph.value(from[i]).name, "'"), absl::StrCat("'", graph.value(to[i]).name, "'"));
  }
  return absl::StrReplaceAll(reason, names);
}

}  // namespace

void KernelCache::Start(const ecg::Graph* graph, const ValueLayouts* layouts, const DeviceModel* device) {
  graph_ = graph;
  layouts_ = layouts;
  device_ = device;
  typical_ = device->WithTypicalRates();
}

KernelCache::Block& KernelCache::Find(std::vector<ecg::NodeId> nodes) {
  std::sort(nodes.begin(), nodes.end());
  auto it = blocks_.find(nodes);
  if (it != blocks_.end()) return it->second;
  Block block = Make(nodes);
  return blocks_.emplace(std::move(nodes), std::move(block)).first->second;
}

KernelCache::Block KernelCache::Make(const std::vector<ecg::NodeId>& nodes) {
  const std::vector<ecg::ValueId> live_out = LiveOutOf(*graph_, nodes);
  BlockSignature signature = SignBlock(*graph_, nodes, live_out, *layouts_);
  if (const auto known = prototypes_.find(signature.text); known != prototypes_.end()) {
    return {known->second, std::move(signature.values), nullptr};
  }
  absl::StatusOr<BlockKernel> made =
      MakeBlockKernel(*graph_, nodes, live_out, *layouts_, *device_, {{}, disabled_passes_});
  if (!made.ok()) return {made.status(), {}, nullptr};  // not shared: the message names this fusion block's nodes
  if (made->stitched && nodes.size() > 1) {
    const absl::Status pressure = movement::CheckPressure(made->kernel, *device_, threads_);
    made->stitched = pressure.ok();
    if (!pressure.ok()) made->reason = std::string(pressure.message());
  }
  const double estimate_ns = movement::EstimateCost(made->kernel, typical_, threads_).latency_ns;
  auto kernel = std::make_shared<const BlockKernel>(*std::move(made));
  auto prototype = std::make_shared<const Prototype>(Prototype{kernel, signature.values, estimate_ns});
  // A weight that is no argument was read while lowering. The kernel then depends on the weight's elements, not only on
  // its type, and cannot be shared.
  const bool all_are_arguments = std::all_of(signature.weights.begin(), signature.weights.end(), [&](ecg::ValueId w) {
    return std::any_of(kernel->args.begin(), kernel->args.end(), [&](const KernelArg& arg) { return arg.value == w; });
  });
  if (all_are_arguments) prototypes_.emplace(std::move(signature.text), prototype);
  return {prototype, std::move(signature.values), kernel};
}

KernelCache::KernelOr KernelCache::Get(const std::vector<ecg::NodeId>& nodes) {
  Block& block = Find(nodes);
  if (block.kernel == nullptr) {
    if (!block.prototype.ok()) return block.prototype.status();
    const Prototype& prototype = **block.prototype;
    BlockKernel kernel = WithValues(*prototype.kernel, prototype.values, block.values);
    if (!kernel.stitched) kernel.reason = Renamed(*graph_, kernel.reason, prototype.values, block.values);
    block.kernel = std::make_shared<const BlockKernel>(std::move(kernel));
  }
  return block.kernel;
}

absl::Status KernelCache::CanSchedule(const std::vector<ecg::NodeId>& nodes) {
  const Block& block = Find(nodes);
  if (!block.prototype.ok()) return absl::FailedPreconditionError(std::string(block.prototype.status().message()));
  const Prototype& prototype = **block.prototype;
  if (nodes.size() == 1 || prototype.kernel->stitched) return absl::OkStatus();
  return absl::FailedPreconditionError(Renamed(*graph_, prototype.kernel->reason, prototype.values, block.values));
}

double KernelCache::EstimateNs(const std::vector<ecg::NodeId>& nodes) {
  const Block& block = Find(nodes);
  return block.prototype.ok() ? (*block.prototype)->estimate_ns : 0;
}

absl::StatusOr<BlockKernel> KernelCache::Schedule(const std::vector<ecg::NodeId>& nodes, const Choices& choices) const {
  return MakeBlockKernel(*graph_, nodes, LiveOutOf(*graph_, nodes), *layouts_, *device_, {choices, disabled_passes_});
}

void KernelCache::Replace(const std::vector<ecg::NodeId>& nodes, BlockKernel kernel) {
  Find(nodes).kernel = std::make_shared<const BlockKernel>(std::move(kernel));
}

}  // namespace fusion
