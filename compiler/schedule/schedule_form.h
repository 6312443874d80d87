// Schedules a fusion block's expressions in one form, with the phases that they then have.
#ifndef FUSION_COMPILER_SCHEDULE_SCHEDULE_FORM_H_
#define FUSION_COMPILER_SCHEDULE_SCHEDULE_FORM_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/layout/layout.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/rewrite/minimal_filtering.h"
#include "compiler/schedule/scheduled_fusion_block.h"
#include "compiler/schedule/stitch/task_grid.h"
#include "compiler/te/program/program.h"

namespace fusion {

struct FormRequest {
  InTasks in_tasks = InTasks::kNoProducts;  // kSliding: without cuts, all stages in one phase
  int library_product = -1;  // the stage that a library computes, -1: none
  // The first stages of groups that no phase may hold together, besides stage 0, ascending. Stages of a group follow
  // one another.
  std::vector<int> cuts = {};
  // Tasks behind a cut may combine the same partial results (SplitReductions) where there are too few of them
  // otherwise.
  bool repeats_combinations = false;
  // The groups between cuts hand nothing to each other, and become one phase each, beside each other.
  bool beside = false;
  const std::vector<HandOverRequest>* hand_overs = nullptr;  // of the plan; null: none
  const PlainSums* plain_sums = nullptr;  // of a convolution by minimal filtering, beside it; null: none
};

// Stitches all stages of a group into one phase where that is possible, else gives products phases of their own and
// stitches the stages between them. With products in tasks, a refusal to stitch is the answer; beside others, so is a
// group of several phases.
absl::StatusOr<ScheduledFusionBlock> ScheduleForm(const te::Program& program,
                                                  const std::map<te::TensorId, Layout>& layouts,
                                                  const DeviceModel& device, const FormRequest& request,
                                                  ChoiceLog* choices);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_SCHEDULE_FORM_H_
