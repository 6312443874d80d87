#include "compiler/schedule/stitch/stitch_stages.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/stitch/join_rows.h"
#include "compiler/schedule/stitch/plain_sums.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_steps.h"
#include "compiler/schedule/tile/products.h"
#include "compiler/schedule/vector/prefetch_reads.h"
#include "compiler/schedule/vector/streaming_stores.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// The fewest columns of a head of attention.
constexpr int64_t kLeastHead = 8;

// Tensors of stages [first, last) that the fusion block returns or that later stages read (`plain`: also beside minimal
// filtering), and the other outputs of the stages that compute these: all outputs of a stage live in one scope.
std::set<TensorId> LiveOutOf(int first, int last, const te::Program& program, const PlainSums* plain) {
  std::set<TensorId> live(program.outputs.begin(), program.outputs.end());
  if (plain != nullptr && program.DefiningTe(plain->te.outputs[0]) >= last) {
    te::VisitTensors(plain->te, [&](TensorId t) { live.insert(t); });
  }
  for (size_t s = last; s < program.tes.size(); ++s)
    te::VisitTensors(program.tes[s], [&](TensorId t) { live.insert(t); });
  std::set<TensorId> result;
  for (int s = first; s < last; ++s) {
    const std::vector<TensorId>& outputs = program.tes[s].outputs;
    if (std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) { return live.count(t) > 0; })) {
      result.insert(outputs.begin(), outputs.end());
    }
  }
  return result;
}

// The stages over physical axes. Sets `products` where one of them wants a register tile.
absl::StatusOr<std::vector<PhysicalTe>> PhysicalStages(int first, int last, InTasks in_tasks, KernelDraft* draft,
                                                       bool* products) {
  std::vector<PhysicalTe> stages;
  for (int s = first; s < last; ++s) {
    const te::Te& te = draft->program.tes[s];
    ASSIGN_OR_RETURN(PhysicalTe physical, draft->Physical(te));
    if (DomainPoints(physical.te) == 0) return absl::FailedPreconditionError("a stage has no elements");
    if (WantsRegisterTile(draft->program, te, draft->device)) {
      *products = true;
      if (in_tasks == InTasks::kNoProducts) {
        return absl::FailedPreconditionError(
            absl::StrCat("'", draft->program.tensors[te.outputs[0]].name,
                         "' is a product that needs a register tile with a grid of its own"));
      }
    }
    stages.push_back(std::move(physical));
  }
  // Splits an axis that holds attention heads beside their columns.
  if (*products && in_tasks == InTasks::kProducts) SplitDividedAxes(&stages.back(), &draft->axes, kLeastHead);
  return stages;
}

// Does the plan ask for a hand-over between these stages to stay inside a task? Then refusing to stitch them for want
// of tasks would refuse the plan.
bool AskedInsideTasks(int first, int last, const KernelDraft& draft) {
  const auto computes = [&](int origin) {
    return std::any_of(draft.program.tes.begin() + first, draft.program.tes.begin() + last, [&](const te::Te& te) {
      return std::binary_search(te.origins.begin(), te.origins.end(), origin);
    });
  };
  return std::any_of(draft.inside_tasks.begin(), draft.inside_tasks.end(),
                     [&](const auto& asked) { return computes(asked.first) && computes(asked.second); });
}

// Does the sum run over more than the points of a window (over channels)? Windows of neighbouring results overlap along
// an axis that reaches as far as from one result to the next.
bool SumsAcrossWindows(const te::Te& te) {
  return te.reduction && std::any_of(te.reduction->axes.begin(), te.reduction->axes.end(), [&](const Axis& axis) {
           bool in_window = false;
           te::Visit(te.body[0], [&](const te::ScalarNode& node) {
             if (node.kind != te::ScalarKind::kLoad) return;
             for (const te::Index& index : node.indices) {
               int64_t step = 0, stride = 0;
               if (!index.UsesAxis(axis.id)) continue;
               const bool affine = index.AffineIn(axis.id, &step);
               for (const Axis& result : te.axes) {
                 if (!index.UsesAxis(result.id)) continue;
                 const bool apart = affine && index.AffineIn(result.id, &stride) &&
                                    std::abs(step) * (axis.extent - 1) < std::abs(stride);
                 in_window = in_window || !apart;
               }
             }
           });
           return axis.extent > 1 && !in_window;
         });
}

// Chooses the axes that tasks share out. `accept_few`: even where they are fewer than the device wants.
absl::StatusOr<std::vector<GridAxis>> GridFor(const TaskBoxes& task, bool products, InTasks in_tasks, bool accept_few,
                                              KernelDraft* draft) {
  const bool tiles = products || in_tasks == InTasks::kHalos;
  const InTasks holds = tiles && HoldsProducts(in_tasks) ? in_tasks : InTasks::kNoProducts;
  ASSIGN_OR_RETURN(std::vector<GridAxis> grid,
                   ChooseGrid(task, holds, draft->device, &draft->axes, {draft->repeats_combinations, accept_few}));
  // Windows overlap by little, so each of several axes alone may be shared out at little cost, but perhaps not all of
  // them together. The axes that make most tasks are kept.
  const bool windows = in_tasks == InTasks::kWindows || in_tasks == InTasks::kWindowRows;
  while (windows && grid.size() > 1 && !task.For(grid).ok()) {
    grid.erase(std::min_element(grid.begin(), grid.end(), [](const GridAxis& a, const GridAxis& b) {
      return a.number.extent < b.number.extent;
    }));
  }
  if (in_tasks == InTasks::kWindowRows) {
    // A stage behind the sums puts results together from several windows (a transposed convolution): rows of theirs are
    // not rows of windows. Depthwise windows, pooling and sums behind them are estimated wrongly in such tasks (they
    // ran at 0.6 to 1.8 of the speed).
    const auto sums = std::count_if(task.stages().begin(), task.stages().end(),
                                    [](const PhysicalTe& stage) { return stage.te.reduction.has_value(); });
    if (sums > 1 || !SumsAcrossWindows(task.stages().back().te) ||
        !TakeSeveralRows(task, draft->device, &draft->axes, &grid)) {
      return absl::FailedPreconditionError("tasks of several rows save no copies");
    }
  }
  return grid;
}

// Adds a scratch buffer for each tensor that only later stages of the task read.
void AddScratch(const TaskBoxes& task, const std::vector<te::Box>& boxes, InTasks in_tasks, KernelDraft* draft) {
  for (size_t s = 0; s + 1 < boxes.size(); ++s) {
    if (task.LiveOut(s)) continue;
    for (TensorId out : task.stages()[s].te.outputs) {
      draft->scratch_boxes[out] = boxes[s];
      const int b = draft->AddBuffer(out, Scope::kBlock);
      draft->kernel.buffers[b].elements = BoxPoints(boxes[s]) + BehindWindows(in_tasks, draft->device);
    }
  }
}

// `live_out`: tensors of the stages that have a buffer outside the task.
absl::Status AddStitchedPhase(int first, int last, InTasks in_tasks, const std::set<TensorId>& live_out,
                              KernelDraft* draft) {
  bool products = false;
  ASSIGN_OR_RETURN(const std::vector<PhysicalTe> stages, PhysicalStages(first, last, in_tasks, draft, &products));
  const LayoutOf layout_of = [draft](TensorId t) { return draft->LayoutOfTensor(t); };
  const TaskBoxes task(draft->program, stages, layout_of, live_out,
                       in_tasks == InTasks::kHalos ? Halos::kRecomputed : Halos::kRefused);
  // Phases beside each other fill units together.
  const bool accept_few = draft->beside || AskedInsideTasks(first, last, *draft);
  ASSIGN_OR_RETURN(const std::vector<GridAxis> grid, GridFor(task, products, in_tasks, accept_few, draft));
  ASSIGN_OR_RETURN(const std::vector<te::Box> boxes, task.For(grid));
  movement::Phase phase;
  for (const GridAxis& shared : grid) phase.grid.push_back(shared.number);
  AddScratch(task, boxes, in_tasks, draft);
  for (size_t s = 0; s < stages.size(); ++s) {
    const int stage = first + static_cast<int>(s);
    draft->choices->Enter(draft->program.tes[stage].origins);
    RETURN_IF_ERROR(AddTaskSteps(draft->program.tes[stage], stages[s], boxes[s], in_tasks, draft, &phase));
    movement::VisitSteps(&phase, [stage](movement::Step* step) {
      if (step->stage < 0) step->stage = stage;
    });
  }
  draft->choices->Enter({});
  JoinedRows joined = JoinRows(draft->kernel, phase, draft->registers, draft->device);
  draft->not_in_registers = std::move(joined.refused);
  if (!joined.phase.row_nests.empty() && draft->choices->Pick("rows", {"joined", "apart"}) == 0) {
    phase = std::move(joined.phase);
    draft->kernel.buffers = std::move(joined.buffers);
  }
  PrefetchNextTask(draft->device, draft->kernel, &phase);
  UseStreamingStores(draft->device, draft->kernel, draft->choices, &phase);
  draft->kernel.phases.push_back(std::move(phase));
  const int64_t most = MostScratchBytes(draft->device, products || in_tasks == InTasks::kHalos);
  AddPlainSums(stages, boxes, first, most, draft);
  const int64_t scratch_bytes = draft->kernel.PlannedScratchBytes();
  if (scratch_bytes > most) {
    return absl::FailedPreconditionError(
        absl::StrCat("a task's intermediates of ", scratch_bytes, " bytes exceed the core's own cache"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status StitchStages(int first, int last, InTasks in_tasks, KernelDraft* draft) {
  const movement::Kernel kernel = draft->kernel;
  const std::vector<int> buffer_of = draft->buffer_of;
  const std::set<TensorId> live_out = LiveOutOf(first, last, draft->program, draft->plain_sums);
  draft->AddDeviceBuffers(live_out);
  absl::Status status = AddStitchedPhase(first, last, in_tasks, live_out, draft);
  if (status.ok() && !HoldsProducts(in_tasks) && draft->choices->Pick("stitch", {"yes", "no"}) == 1) {
    status = absl::FailedPreconditionError("one phase for each stage was measured to be faster");
  }
  draft->scratch_boxes.clear();
  if (!status.ok()) {
    draft->kernel = kernel;
    draft->buffer_of = buffer_of;
  }
  return status;
}

}  // namespace fusion
