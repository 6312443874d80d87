#include "compiler/schedule/schedule_form.h"

#include <string>
#include <utility>

#include "compiler/schedule/block_passes.h"
#include "compiler/schedule/drop_unused_buffers.h"
#include "compiler/schedule/kernel_draft.h"
#include "compiler/schedule/stage_phases.h"
#include "compiler/schedule/stitch/stitch_stages.h"
#include "compiler/schedule/tile/products.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

struct Form {
  InTasks in_tasks;
  int library_product;
};

// Adds stages [first, last), stitched if possible (`refused`: already known to be impossible), else as a phase each.
absl::Status AddStages(int first, int last, bool refused, const Form& form, KernelDraft* draft) {
  if (last - first > 1 && !refused && StitchStages(first, last, form.in_tasks, draft).ok()) return absl::OkStatus();
  for (int s = first; s < last; ++s) {
    const te::Te& te = draft->program.tes[s];
    draft->AddDeviceBuffers({te.outputs.begin(), te.outputs.end()});
    RETURN_IF_ERROR(s == form.library_product ? AddLibraryPhase(te, draft) : AddStagePhases(te, draft));
  }
  return absl::OkStatus();
}

// Adds each product alone; the stages between products may still share a grid.
absl::Status AddBetweenProducts(const Form& form, KernelDraft* draft) {
  const te::Program& program = draft->program;
  const int n = static_cast<int>(program.tes.size());
  const auto is_product = [&](int s) { return WantsRegisterTile(program, program.tes[s], draft->device); };
  for (int first = 0; first < n;) {
    int last = first + 1;
    if (!is_product(first)) {
      while (last < n && !is_product(last)) ++last;
    }
    RETURN_IF_ERROR(AddStages(first, last, last - first == n, form, draft));
    first = last;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScheduledBlock> ScheduleForm(const te::Program& program, const std::map<te::TensorId, Layout>& layouts,
                                            const DeviceModel& device, InTasks in_tasks, ChoiceLog* choices,
                                            int library_product) {
  if (program.tes.empty()) return absl::InternalError("the fusion block computes nothing");
  const Form form = {in_tasks, library_product};
  KernelDraft draft(program, layouts, device, choices);
  ScheduledBlock result;
  const int n = static_cast<int>(program.tes.size());
  if (n == 1) {
    RETURN_IF_ERROR(AddStages(0, 1, /*refused=*/true, form, &draft));
  } else {
    const absl::Status stitched =
        library_product < 0 ? StitchStages(0, n, in_tasks, &draft)
                            : absl::FailedPreconditionError("a library call for one stage was measured to be faster");
    if (!stitched.ok() && HoldsProducts(in_tasks)) return stitched;
    if (!stitched.ok()) {
      result.stitched = false;
      result.reason = std::string(stitched.message());
      RETURN_IF_ERROR(AddBetweenProducts(form, &draft));
    }
  }
  DropUnusedBuffers(&draft.kernel);
  draft.kernel.scratch_bytes = draft.kernel.PlannedScratchBytes();
  draft.kernel.next_axis = draft.axes.next();
  RETURN_IF_ERROR(VerifySchedule(draft.kernel));
  result.kernel = std::move(draft.kernel);
  return result;
}

}  // namespace fusion
