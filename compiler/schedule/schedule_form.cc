#include "compiler/schedule/schedule_form.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/drop_unused_buffers.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/schedule/hand_overs.h"
#include "compiler/schedule/kernel_draft.h"
#include "compiler/schedule/stage_phases.h"
#include "compiler/schedule/stitch/plain_sums.h"
#include "compiler/schedule/stitch/slide_windows.h"
#include "compiler/schedule/stitch/stitch_stages.h"
#include "compiler/schedule/stitch/task_steps.h"
#include "compiler/schedule/tile/products.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Adds stages [first, last), stitched if possible (`refused`: already known to be impossible), else as a phase each.
absl::Status AddStages(int first, int last, bool refused, const FormRequest& form, KernelDraft* draft) {
  if (last - first > 1 && !refused && StitchStages(first, last, form.in_tasks, draft).ok()) return absl::OkStatus();
  for (int s = first; s < last; ++s) {
    const te::Te& te = draft->program.tes[s];
    draft->AddDeviceBuffers({te.outputs.begin(), te.outputs.end()});
    const size_t first_phase = draft->kernel.phases.size();
    draft->choices->Enter(te.origins);
    RETURN_IF_ERROR(s == form.library_product ? AddLibraryPhase(te, draft) : AddStagePhases(te, draft));
    for (size_t p = first_phase; p < draft->kernel.phases.size(); ++p) {
      movement::VisitSteps(&draft->kernel.phases[p], [s](movement::Step* step) { step->stage = s; });
    }
  }
  return absl::OkStatus();
}

// Adds each product of stages [first, last) alone; the stages between products may still share a grid.
absl::Status AddBetweenProducts(int first, int last, const FormRequest& form, KernelDraft* draft) {
  const te::Program& program = draft->program;
  const auto is_product = [&](int s) { return WantsRegisterTile(program, program.tes[s], draft->device); };
  for (int from = first; from < last;) {
    int to = from + 1;
    if (!is_product(from)) {
      while (to < last && !is_product(to)) ++to;
    }
    RETURN_IF_ERROR(AddStages(from, to, to - from == last - first, form, draft));
    from = to;
  }
  return absl::OkStatus();
}

// Adds the stages of a group. `reason` receives why they do not share a task.
absl::Status AddGroup(int first, int last, const FormRequest& form, KernelDraft* draft, std::string* reason) {
  if (form.in_tasks == InTasks::kSliding) return SlideWindows(draft);
  if (last - first == 1) return AddStages(first, last, /*refused=*/true, form, draft);
  const absl::Status stitched =
      form.library_product < 0
          ? StitchStages(first, last, form.in_tasks, draft)
          : absl::FailedPreconditionError("a library call for one stage was measured to be faster");
  if (stitched.ok() || HoldsProducts(form.in_tasks) || form.in_tasks == InTasks::kWindowRows) return stitched;
  absl::StrAppend(reason, reason->empty() ? "" : "; ", stitched.message());
  return AddBetweenProducts(first, last, form, draft);
}

RegisterRequests RegistersAsked(const std::vector<HandOverRequest>& requests) {
  RegisterRequests result;
  for (const HandOverRequest& request : requests) {
    if (!request.asked) continue;
    if (request.furthest == Scope::kWarp) result.wanted.insert(request.tensor);
    if (request.nearest > Scope::kWarp) result.unwanted.insert(request.tensor);
  }
  return result;
}

std::set<std::pair<int, int>> AskedInsideTasks(const std::vector<HandOverRequest>& requests) {
  std::set<std::pair<int, int>> result;
  for (const HandOverRequest& request : requests) {
    const bool inside = request.furthest == Scope::kWarp || request.furthest == Scope::kBlock;
    if (request.asked && inside) result.emplace(request.producer, request.consumer);
  }
  return result;
}

}  // namespace

absl::StatusOr<ScheduledFusionBlock> ScheduleForm(const te::Program& program,
                                                  const std::map<te::TensorId, Layout>& layouts,
                                                  const DeviceModel& device, const FormRequest& request,
                                                  ChoiceLog* choices) {
  if (program.tes.empty()) return absl::InternalError("the fusion block computes nothing");
  KernelDraft draft(program, layouts, device, choices);
  draft.repeats_combinations = request.repeats_combinations;
  draft.beside = request.beside;
  draft.plain_sums = request.plain_sums;
  if (request.hand_overs != nullptr) {
    draft.registers = RegistersAsked(*request.hand_overs);
    draft.inside_tasks = AskedInsideTasks(*request.hand_overs);
  }
  ScheduledFusionBlock result;
  std::vector<int> ends = request.cuts;
  ends.push_back(static_cast<int>(program.tes.size()));
  for (int first = 0; const int end : ends) {
    const size_t phases = draft.kernel.phases.size();
    RETURN_IF_ERROR(AddGroup(std::exchange(first, end), end, request, &draft, &result.reason));
    if (!request.beside) continue;
    if (draft.kernel.phases.size() != phases + 1) {
      return absl::FailedPreconditionError(
          absl::StrCat("'", program.tensors[program.tes[end - 1].outputs[0]].name, "' and what it needs take ",
                       draft.kernel.phases.size() - phases, " phases, and only single ones run beside each other",
                       result.reason.empty() ? "" : ": ", result.reason));
    }
    draft.kernel.phases.back().beside = phases > 0;
  }
  AddPlainSumsBehindBarrier(&draft);
  DropUnusedBuffers(&draft.kernel);
  choices->Enter({});
  draft.kernel.scratch_bytes = draft.kernel.PlannedScratchBytes();
  draft.kernel.next_axis = draft.axes.next();
  RETURN_IF_ERROR(VerifySchedule(draft.kernel));
  result.hand_overs = HandOversOf(program, draft.kernel);
  result.phase_origins = PhaseOriginsOf(program, draft.kernel);
  for (StageHandOver& hand_over : result.hand_overs) {
    const auto why = draft.not_in_registers.find(hand_over.tensor);
    if (hand_over.scope == Scope::kBlock && why != draft.not_in_registers.end()) hand_over.why = why->second;
  }
  result.kernel = std::move(draft.kernel);
  return result;
}

}  // namespace fusion
