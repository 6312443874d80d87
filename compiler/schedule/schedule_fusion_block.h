// Tile-and-stitch (compiler/schedule/README.md): turns the stages of a fusion block into one kernel. A single stage
// gets a grid of its own. Several stages share an outer grid over the axes of the last one along which no stage is
// computed twice (bounds inference); in each task the stages run one after another into scratch boxes.
//
// The kernel has several phases, with intermediates at device scope, where no such grid exists, where it leaves the
// device idle, or where a large product wants a register tile. `reason` then says why: each product is alone, and the
// stages between two products are stitched if they can be.
//
// A planner may ask for the scopes of hand-overs (HandOverRequest). Each request is honoured or refused: phases are
// cut where a hand-over has to have device scope, and may be cut where it is allowed to. Hand-overs of which nothing is
// asked may go as far as the cheapest form lets them; `within` says whether that is further than the default.
#ifndef FUSION_COMPILER_SCHEDULE_SCHEDULE_FUSION_BLOCK_H_
#define FUSION_COMPILER_SCHEDULE_SCHEDULE_FUSION_BLOCK_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/layout/layout.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/hand_overs.h"
#include "compiler/schedule/scheduled_fusion_block.h"
#include "compiler/te/program/program.h"

namespace fusion {

struct ScheduleOptions {
  Choices choices;
  // Names of FusionBlockPasses() to leave out. "winograd": convolutions may not trade accuracy for products.
  std::set<std::string> disabled_passes = {};
  std::vector<HandOverRequest> hand_overs = {};  // each hand-over between two origins, at most once
  std::vector<DirectiveRequest> directives = {};
};

// `program` is as FormStages left it. `layouts` holds layouts of kernel-scope tensors (inputs, constants, outputs); an
// absent one is plain.
//
// Fails with FAILED_PRECONDITION, naming the tensor or the choice, where no form gives a hand-over the scope that is
// asked for, or meets a directive.
absl::StatusOr<ScheduledFusionBlock> ScheduleFusionBlock(const te::Program& program,
                                                         const std::map<te::TensorId, Layout>& layouts,
                                                         const DeviceModel& device,
                                                         const ScheduleOptions& options = {});

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SCHEDULE_FUSION_BLOCK_H_
