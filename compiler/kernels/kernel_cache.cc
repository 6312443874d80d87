#include "compiler/kernels/kernel_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/cost/typical_core.h"
#include "compiler/kernels/fusion_signature.h"
#include "compiler/movement/pressure.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Returns the text with the names of values `from[i]`, where it quotes them, replaced by those of `to[i]`.
std::string Renamed(const ecg::Graph& graph, const std::string& text, const std::vector<ecg::ValueId>& from,
                    const std::vector<ecg::ValueId>& to) {
  if (text.empty()) return text;
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < from.size(); ++i) {
    names.emplace(absl::StrCat("'", graph.value(from[i]).name, "'"), absl::StrCat("'", graph.value(to[i]).name, "'"));
  }
  return absl::StrReplaceAll(text, names);
}

absl::Status Renamed(const ecg::Graph& graph, const absl::Status& status, const std::vector<ecg::ValueId>& from,
                     const std::vector<ecg::ValueId>& to) {
  if (status.ok()) return status;
  return absl::Status(status.code(), Renamed(graph, std::string(status.message()), from, to));
}

}  // namespace

void KernelCache::Start(const ecg::Graph* graph, const ValueLayouts* layouts, const DeviceModel* device) {
  graph_ = graph;
  layouts_ = layouts;
  device_ = device;
  typical_ = WithTypicalRates(*device);
  loops_ = ecg::LoopsOf(*graph);
}

KernelCache::Entry& KernelCache::Find(const FusionBlock& fusion_block) {
  auto it = fusion_blocks_.find(fusion_block);
  if (it == fusion_blocks_.end()) it = fusion_blocks_.emplace(fusion_block, Make(fusion_block)).first;
  return it->second;
}

KernelCache::Entry KernelCache::Make(const FusionBlock& fusion_block) {
  if (absl::Status same = ecg::CheckSameLoop(*graph_, loops_, fusion_block.Members()); !same.ok()) {
    return {std::move(same), {}, nullptr};
  }
  const std::vector<ecg::ValueId> live_out = LiveOutOf(*graph_, fusion_block);
  FusionSignature signature = SignFusionBlock(*graph_, fusion_block, live_out, *layouts_);
  if (const auto known = prototypes_.find(signature.text); known != prototypes_.end()) {
    return {known->second, std::move(signature.values), nullptr};
  }
  absl::StatusOr<FusionKernel> made =
      MakeFusionKernel(*graph_, fusion_block, live_out, *layouts_, *device_, {{}, disabled_passes_});
  if (!made.ok()) return {made.status(), {}, nullptr};  // not shared: the message names this fusion block's nodes
  if (made->fits.ok() && fusion_block.Members().size() > 1) {
    made->fits = movement::CheckPressure(made->kernel, *device_, threads_);
  }
  const FusionBlockAccount account = AccountOf(*made, typical_, threads_);
  auto kernel = std::make_shared<const FusionKernel>(*std::move(made));
  auto prototype = std::make_shared<const Prototype>(Prototype{kernel, signature.values, account});
  // A weight that is no argument was read while lowering. The kernel then depends on the weight's elements, not only on
  // its type, and cannot be shared.
  const bool all_are_arguments = std::all_of(signature.weights.begin(), signature.weights.end(), [&](ecg::ValueId w) {
    return std::any_of(kernel->args.begin(), kernel->args.end(), [&](const KernelArg& arg) { return arg.value == w; });
  });
  if (all_are_arguments) prototypes_.emplace(std::move(signature.text), prototype);
  return {prototype, std::move(signature.values), kernel};
}

KernelCache::KernelOr KernelCache::Get(const FusionBlock& nodes) {
  Entry& fusion_block = Find(nodes);
  if (fusion_block.kernel == nullptr) {
    if (!fusion_block.prototype.ok()) return fusion_block.prototype.status();
    const Prototype& prototype = **fusion_block.prototype;
    FusionKernel kernel = WithValues(*prototype.kernel, prototype.values, fusion_block.values);
    kernel.fits = Renamed(*graph_, kernel.fits, prototype.values, fusion_block.values);
    kernel.reason = Renamed(*graph_, kernel.reason, prototype.values, fusion_block.values);
    fusion_block.kernel = std::make_shared<const FusionKernel>(std::move(kernel));
  }
  return fusion_block.kernel;
}

absl::StatusOr<FusionBlockAccount> KernelCache::Fit(const FusionBlock& nodes) {
  const Entry& fusion_block = Find(nodes);
  if (!fusion_block.prototype.ok())
    return absl::FailedPreconditionError(std::string(fusion_block.prototype.status().message()));
  const Prototype& prototype = **fusion_block.prototype;
  RETURN_IF_ERROR(Renamed(*graph_, prototype.kernel->fits, prototype.values, fusion_block.values));
  return prototype.account;
}

double KernelCache::EstimateNs(const FusionBlock& nodes) {
  const Entry& fusion_block = Find(nodes);
  return fusion_block.prototype.ok() ? (*fusion_block.prototype)->account.estimate_ns : 0;
}

absl::StatusOr<FusionKernel> KernelCache::Schedule(const FusionBlock& fusion_block, const Choices& choices) const {
  return MakeFusionKernel(*graph_, fusion_block, LiveOutOf(*graph_, fusion_block), *layouts_, *device_,
                          {choices, disabled_passes_});
}

void KernelCache::Replace(const FusionBlock& fusion_block, FusionKernel kernel) {
  kernel.measured = true;
  Find(fusion_block).kernel = std::make_shared<const FusionKernel>(std::move(kernel));
}

}  // namespace fusion
