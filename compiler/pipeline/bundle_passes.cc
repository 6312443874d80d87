#include "compiler/pipeline/bundle_passes.h"

#include <numeric>
#include <utility>
#include <vector>

#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/bundle/hold_once.h"
#include "compiler/bundle/share_packings.h"
#include "compiler/pipeline/join_launches.h"
#include "runtime/base/status_macros.h"

namespace fusion::passes {
namespace {

bool IsSmall(const Compilation& compilation) { return compilation.options.size == "small"; }

// The kernels of a launch as these choices make them, one for each set of its arguments.
absl::StatusOr<std::vector<FusionKernel>> Reschedule(const Compilation& program, size_t launch,
                                                     const Choices& choices) {
  const DeviceModel& device = *program.context.device;
  const Planned& planned = *program.planned;
  std::vector<FusionKernel> kernels;
  for (const size_t b : planned.launches[launch]) {
    const FusionBlock& fusion_block = planned.plan.fusion_blocks[b];
    ASSIGN_OR_RETURN(FusionKernel kernel,
                     MakeFusionKernel(planned.graph, fusion_block, LiveOutOf(planned.graph, fusion_block),
                                      planned.layouts, device, {choices, DisabledFusionBlockPasses(program.options)}));
    RETURN_IF_ERROR(kernel.fits);
    RETURN_IF_ERROR(PlaceKernel(kernel.kernel, device).backend->CheckSupported(kernel.kernel));
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

absl::Status SharePackings(absl::Span<Compilation> programs) {
  std::vector<SharingProgram> sharing;
  for (const Compilation& program : programs) {
    sharing.push_back({&program.planned->graph, program.launches, [&program](size_t launch, const Choices& choices) {
                         return Reschedule(program, launch, choices);
                       },
                       &program.not_held_once});
  }
  const Compilation& first = programs[0];
  SharingLeft left = fusion::SharePackings(*first.context.device, first.Units(), IsSmall(first), sharing);
  first.account->packed_apart = static_cast<int64_t>(left.costly.size());
  first.account->sharing_ns = std::accumulate(left.more_ns.begin(), left.more_ns.end(), 0.0);
  first.account->weights.repeated = std::move(left.repeated);
  return absl::OkStatus();
}

absl::Status HoldOnce(absl::Span<Compilation> programs) {
  for (Compilation& program : programs) {
    program.not_held_once = fusion::HoldOnce(program.planned->graph, *program.context.device, program.Units(),
                                             IsSmall(program), program.launches);
  }
  return absl::OkStatus();
}

bool MayJoinLaunches(const Compilation& compilation) {
  const DeviceModel& device = *compilation.context.device;
  return device.RepeatsLaunches() && device.persistent_groups > 0;
}

absl::Status JoinLaunches(absl::Span<Compilation> programs) {
  for (Compilation& program : programs) {
    const std::vector<JoinedLaunch> joined =
        fusion::JoinLaunches(*program.context.device, program.Units(), program.planned, program.launches);
    AccountForJoined(joined, static_cast<int64_t>(program.launches->size()), program.account);
  }
  return absl::OkStatus();
}

}  // namespace fusion::passes
