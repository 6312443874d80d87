#include "compiler/pipeline/compilation.h"

#include "compiler/backends/backend.h"
#include "compiler/cost/matrix_products.h"
#include "compiler/ops/control/find_loops.h"

namespace fusion {

std::vector<int64_t> Planned::KernelRuns() const {
  const ecg::Loops found = ecg::LoopsOf(graph);
  std::vector<int64_t> runs;
  for (const FusionBlock& fusion_block : KernelFusionBlocks()) runs.push_back(found.Trips(fusion_block.nodes[0]));
  return runs;
}

std::vector<FusionBlock> Planned::KernelFusionBlocks() const {
  std::vector<FusionBlock> fusion_blocks;
  for (size_t b = 0; b < plan.fusion_blocks.size(); ++b) {
    if (!elided.fusion_blocks.count(b)) fusion_blocks.push_back(plan.fusion_blocks[b]);
  }
  return fusion_blocks;
}

int Compilation::Units() const { return fusion::Units(options, context); }

int Units(const CompileOptions& options, const CompileContext& context) {
  const Backend* backend = FindBackend(context.device->kind);
  return backend == nullptr ? options.threads : backend->Units(options.threads, *context.device);
}

CompileContext ContextFor(const CompileOptions& options, const CompileContext& context, DeviceModel* device) {
  *device = options.precision == "tf32" ? AllowTf32(*context.device) : *context.device;
  CompileContext own = context;
  own.device = device;
  return own;
}

std::set<std::string> DisabledFusionBlockPasses(const CompileOptions& options) {
  std::set<std::string> disabled = options.disabled_passes;
  // Winograd reassociates sums, and its transformed filters are larger than the filters.
  if (options.math == "strict" || options.size == "small") disabled.insert("winograd");
  return disabled;
}

}  // namespace fusion
