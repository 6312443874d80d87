#include "compiler/launch/kernel_order.h"

#include <map>

namespace fusion {
namespace {

// Returns the outermost value whose memory holds this one.
ecg::ValueId WholeOf(const ElidedCopies& elided, ecg::ValueId value) {
  for (auto it = elided.values.find(value); it != elided.values.end(); it = elided.values.find(value)) {
    value = it->second.whole;
  }
  return value;
}

}  // namespace

std::vector<std::set<size_t>> Dependencies(const std::vector<std::shared_ptr<const FusionKernel>>& kernels,
                                           const ElidedCopies& elided) {
  std::vector<std::set<size_t>> before(kernels.size());
  std::map<ecg::ValueId, std::vector<size_t>> writers;
  for (size_t b = 0; b < kernels.size(); ++b) {
    if (elided.fusion_blocks.count(b) > 0) continue;
    for (const KernelArg& arg : kernels[b]->args) {
      if (arg.kind != KernelArg::Kind::kValue || arg.written) continue;
      const auto known = writers.find(WholeOf(elided, arg.value));
      if (known != writers.end()) before[b].insert(known->second.begin(), known->second.end());
    }
    for (const KernelArg& arg : kernels[b]->args) {
      if (arg.kind == KernelArg::Kind::kValue && arg.written) writers[WholeOf(elided, arg.value)].push_back(b);
    }
  }
  return before;
}

LaunchGraph LaunchGraphOf(const std::vector<std::set<size_t>>& before,
                          const std::vector<std::vector<size_t>>& launches) {
  std::vector<size_t> launch_of(before.size(), 0);
  for (size_t l = 0; l < launches.size(); ++l) {
    for (const size_t b : launches[l]) launch_of[b] = l;
  }
  LaunchGraph graph{std::vector<std::set<size_t>>(launches.size()), std::vector<size_t>(launches.size(), 0)};
  for (size_t l = 0; l < launches.size(); ++l) {
    for (const size_t b : launches[l]) {
      for (const size_t other : before[b]) {
        if (graph.after[launch_of[other]].insert(l).second) ++graph.waits[l];
      }
    }
  }
  return graph;
}

int64_t WrittenBytes(const FusionKernel& fusion_kernel) {
  int64_t bytes = 0;
  size_t arg = 0;
  for (const movement::Buffer& buffer : fusion_kernel.kernel.buffers) {
    if (!movement::IsArgument(buffer)) continue;
    const KernelArg& argument = fusion_kernel.args[arg++];
    if (argument.written || argument.kind == KernelArg::Kind::kTemporary) bytes += movement::SizeBytes(buffer);
  }
  return bytes;
}

}  // namespace fusion
