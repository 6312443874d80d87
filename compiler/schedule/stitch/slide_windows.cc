#include "compiler/schedule/stitch/slide_windows.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/cost.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/stitch/task_boxes.h"
#include "compiler/schedule/stitch/task_grid.h"
#include "compiler/schedule/stitch/task_steps.h"
#include "compiler/schedule/stitch/window_rows.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// Rows of the result that a turn may have to compute, so that each stage moves by whole rows (what is enlarged by 2
// moves by one row with two of the result). Where fewer do, twice and four times as many are choices.
constexpr int64_t kSteps[] = {1, 2, 4, 8};
// The fewest columns of a tile.
constexpr int64_t kLeastColumns = 4;

using Grid = std::vector<GridAxis>;

class Slider {
 public:
  explicit Slider(KernelDraft* draft)
      : draft_(*draft),
        program_(draft->program),
        layout_of_([draft](TensorId tensor) { return draft->LayoutOfTensor(tensor); }) {}

  absl::Status Slide() {
    RETURN_IF_ERROR(MakeStages());
    RETURN_IF_ERROR(ChooseRows());
    ASSIGN_OR_RETURN(const Grid grid, ChooseGrid());
    return AddPhase(grid);
  }

 private:
  std::string NameOf(TensorId tensor) const { return absl::StrCat("'", program_.tensors[tensor].name, "'"); }
  const te::Te& Main() const { return stages_.back().te; }

  absl::Status MakeStages() {
    if (program_.tes.size() < 2) return absl::FailedPreconditionError("one stage alone hands no rows to another");
    for (const te::Te& te : program_.tes) {
      const TensorId out = te.outputs[0];
      if (te.routine) return absl::FailedPreconditionError("a routine has a launch of its own");
      for (const TensorId tensor : te.outputs) {
        if (program_.tensors[tensor].dtype != DType::kF32) {
          return absl::FailedPreconditionError(absl::StrCat(NameOf(tensor), " is not of f32"));
        }
        const bool returned =
            std::find(program_.outputs.begin(), program_.outputs.end(), tensor) != program_.outputs.end();
        if (returned && &te != &program_.tes.back()) {
          return absl::FailedPreconditionError(
              absl::StrCat(NameOf(tensor), " is a result of the kernel, and only that of the last stage can be one"));
        }
      }
      ASSIGN_OR_RETURN(PhysicalTe physical, draft_.Physical(te));
      if (DomainPoints(physical.te) == 0) return absl::FailedPreconditionError(absl::StrCat(NameOf(out), " is empty"));
      stages_.push_back(std::move(physical));
    }
    return absl::OkStatus();
  }

  // Takes the outermost axis along which windows slide, and the rows of a turn.
  absl::Status ChooseRows() {
    std::vector<std::string> refusals;
    for (size_t d = 0; d < Main().axes.size(); ++d) {
      const int64_t extent = Main().axes[d].extent;
      if (extent == 1) continue;
      absl::Status refusal;
      std::vector<int64_t> steps;
      for (const int64_t step : kSteps) {
        if (step > extent) break;
        const absl::StatusOr<RowPlan> plan = PlanRows(program_, stages_, layout_of_, d, step, &draft_.axes);
        if (plan.ok() && plan->slides && steps.size() < 3) steps.push_back(step);
        if (plan.ok() && !plan->slides) refusal = absl::FailedPreconditionError("no window overlaps the next one");
        if (refusal.ok()) refusal = plan.status();
      }
      if (steps.empty()) {
        refusals.push_back(absl::StrCat("along dimension ", d, ", ", refusal.message()));
        continue;
      }
      draft_.choices->Enter({});
      const int64_t step = steps[draft_.choices->Pick("turn", steps, NumberLabel)];
      ASSIGN_OR_RETURN(plan_, PlanRows(program_, stages_, layout_of_, d, step, &draft_.axes));
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat("no axis of ", NameOf(Main().outputs[0]), " slides",
                                                      refusals.empty() ? "" : ": ", absl::StrJoin(refusals, "; ")));
  }

  TaskBoxes Boxes(Halos halos) const { return TaskBoxes(program_, stages_, layout_of_, live_out_, halos); }

  // The axes outside of the rows that tasks share out without computing anything twice, then tiles of columns for
  // units that would have no task otherwise. The cheapest grid is taken.
  absl::StatusOr<Grid> ChooseGrid() {
    const te::Te& main = Main();
    live_out_ = {main.outputs.begin(), main.outputs.end()};
    const size_t rows = plan_.stages.back().physical;
    const TaskBoxes exact = Boxes(Halos::kRefused);
    Grid outer;
    int64_t tasks = 1;
    for (size_t d = 0; d < rows; ++d) {
      if (main.axes[d].extent == 1 || !exact.For({InBlocks(main.axes[d], 1, &draft_.axes)}).ok()) continue;
      outer.push_back(InBlocks(main.axes[d], 1, &draft_.axes));
      tasks *= main.axes[d].extent;
    }
    std::vector<Grid> grids = {outer};
    std::vector<std::string> labels = {"whole"};
    const Layout layout = layout_of_(main.outputs[0]);
    const size_t columns = rows + 1, last = main.axes.size() - (layout.plain() || layout.axis_last() ? 0 : 1);
    for (int64_t wanted = draft_.device.parallel_units; columns < last && wanted <= 2 * draft_.device.parallel_units;
         wanted *= 2) {
      const int64_t tiles = (wanted + tasks - 1) / tasks, extent = main.axes[columns].extent;
      const int64_t block = (extent + tiles - 1) / tiles;
      if (tiles < 2 || block < kLeastColumns) continue;
      Grid grid = outer;
      grid.push_back(InBlocks(main.axes[columns], block, &draft_.axes));
      grids.push_back(std::move(grid));
      labels.push_back(absl::StrCat(block));
    }
    return Cheapest(grids, labels);
  }

  absl::StatusOr<Grid> Cheapest(const std::vector<Grid>& grids, const std::vector<std::string>& labels) {
    struct Priced {
      double ns;
      size_t number;
    };
    std::vector<Priced> made;
    absl::Status refusal;
    for (size_t g = 0; g < grids.size(); ++g) {
      const KernelDraft::Saved before = draft_.Save();
      const std::vector<int> buffer_of = draft_.buffer_of;
      const absl::Status added = AddPhase(grids[g]);
      if (added.ok()) {
        const int units = draft_.device.parallel_units;
        made.push_back({movement::EstimateCost(draft_.kernel, draft_.device, units).latency_ns, g});
      } else if (refusal.ok()) {
        refusal = added;
      }
      draft_.Restore(before);
      draft_.buffer_of = buffer_of;
    }
    if (made.empty()) return refusal;
    std::stable_sort(made.begin(), made.end(), [](const Priced& a, const Priced& b) { return a.ns < b.ns; });
    draft_.choices->Enter({});
    const int taken = draft_.choices->Pick(
        "strips", made, [&](const Priced& one) { return labels[one.number]; }, ChoiceKind::kSharing);
    return grids[made[taken].number];
  }

  // Adds the phase for a grid.
  absl::Status AddPhase(const Grid& grid) {
    draft_.scratch_boxes.clear();
    draft_.ring_dimensions.clear();
    const TaskBoxes task = Boxes(Halos::kRecomputed);
    ASSIGN_OR_RETURN(std::vector<te::Box> boxes, task.For(grid));
    for (size_t s = 0; s < boxes.size(); ++s) {
      const StageRows& rows = plan_.stages[s];
      boxes[s][rows.physical] = {Index(rows.turn) * rows.step, rows.step};
      if (s + 1 < boxes.size()) AddRings(s, boxes[s]);
    }
    movement::Phase phase;
    for (const GridAxis& shared : grid) phase.grid.push_back(shared.number);
    for (size_t s = 0; s < boxes.size(); ++s) {
      const size_t before = phase.steps.size();
      draft_.choices->Enter(program_.tes[s].origins);
      RETURN_IF_ERROR(
          AddTaskSteps(program_.tes[s], stages_[s], boxes[s], InTasks::kSliding, &draft_, &phase, AxesOfRows(s)));
      for (size_t step = before; step < phase.steps.size(); ++step) {
        phase.steps[step].stage = static_cast<int>(s);
        phase.steps[step].turn = TurnOf(s, phase.steps[step]);
        RETURN_IF_ERROR(CheckCopy(s, phase.steps[step]));
      }
    }
    draft_.choices->Enter({});
    const int in_front = MoveInFront(&phase);
    phase.task_loops = {{in_front, static_cast<int>(phase.steps.size()) - in_front, plan_.iterations}};
    draft_.kernel.phases.push_back(std::move(phase));
    const int64_t bytes = draft_.kernel.PlannedScratchBytes(), most = MostScratchBytes(draft_.device, true);
    if (bytes <= most) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat("what a task keeps takes ", bytes, " bytes, and its scratch has ", most, " at most"));
  }

  // A ring for each output of a stage.
  void AddRings(size_t s, te::Box box) {
    const StageRows& rows = plan_.stages[s];
    box[rows.physical] = {Index(0), rows.kept};
    movement::Ring ring{rows.kept, stages_[s].te.axes[rows.physical].extent, 1};
    for (size_t d = rows.physical + 1; d < box.size(); ++d) ring.pitch *= box[d].length;
    for (const TensorId out : stages_[s].te.outputs) {
      draft_.scratch_boxes[out] = box;
      draft_.ring_dimensions[out] = rows.physical;
      movement::Buffer& buffer = draft_.kernel.buffers[draft_.AddBuffer(out, Scope::kBlock)];
      buffer.elements = BoxPoints(box) + BehindWindows(InTasks::kSliding, draft_.device);
      buffer.ring = ring;
    }
  }

  // The axes of a stage that say which row of a ring it means.
  std::set<int> AxesOfRows(size_t s) const {
    const te::Te& te = stages_[s].te;
    std::vector<Axis> axes = {te.axes[plan_.stages[s].physical]};
    const auto visit = [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      for (const WindowOfRows& window : plan_.windows) {
        if (window.reader != s || window.tensor != node.tensor) continue;
        te::CollectAxes(node.indices[plan_.stages[window.stage].logical], &axes);
      }
    };
    for (const te::Scalar& one : te.body) te::Visit(one, visit);
    for (const te::Scalar& one : te.then) te::Visit(one, visit);
    std::set<int> ids;
    for (const Axis& axis : axes) ids.insert(axis.id);
    return ids;
  }

  movement::Turn TurnOf(size_t s, const movement::Step& step) const {
    const StageRows& rows = plan_.stages[s];
    std::set<int> touched;
    movement::VisitBuffers(step, [&](int buffer) { touched.insert(buffer); });
    movement::Turn turn{rows.turn, rows.first};
    for (const WindowOfRows& window : plan_.windows) {
      const int buffer = draft_.buffer_of[window.tensor];
      if (window.reader != s || touched.count(buffer) == 0) continue;
      const Index first = Index(rows.turn) * plan_.stages[window.stage].step + Index(window.first);
      turn.reads.push_back({buffer, first, window.rows});
    }
    for (const movement::Store& store : step.stores) {
      if (!draft_.kernel.buffers[store.buffer].ring) continue;
      turn.writes.push_back({store.buffer, Index(rows.turn) * rows.step, rows.step});
    }
    return turn;
  }

  // Refuses the copy of an operand that lies in a ring: it would read rows that are not there, which its reader leaves
  // out.
  absl::Status CheckCopy(size_t s, const movement::Step& step) const {
    const std::vector<TensorId>& outputs = program_.tes[s].outputs;
    const int tensor = draft_.kernel.buffers[step.stores[0].buffer].tensor;
    if (step.turn->reads.empty() || std::find(outputs.begin(), outputs.end(), tensor) != outputs.end()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("an operand of ", NameOf(outputs[0]), " that lies in a ring would have to be copied"));
  }

  // Moves the steps that do the same in every turn (copies of operands that do not move with the rows) in front of the
  // others. Returns how many these are.
  int MoveInFront(movement::Phase* phase) const {
    std::vector<movement::Step> in_front, in_loop;
    std::set<int> made;  // in front
    for (movement::Step& step : phase->steps) {
      if (Moves(step, made)) {
        in_loop.push_back(std::move(step));
        continue;
      }
      for (const movement::Store& store : step.stores) made.insert(store.buffer);
      step.turn.reset();
      in_front.push_back(std::move(step));
    }
    const int count = static_cast<int>(in_front.size());
    phase->steps = std::move(in_front);
    for (movement::Step& step : in_loop) phase->steps.push_back(std::move(step));
    return count;
  }

  // May the step do something else in another turn, or touch what steps of the loop touch? `made`: what is written in
  // front of the loop.
  bool Moves(const movement::Step& step, const std::set<int>& made) const {
    bool moves = false;
    movement::Step copy = step;
    movement::SubstituteAxes(&copy, [&](const Axis& axis) -> const Index* {
      moves = moves || axis.id == step.turn->axis.id;
      return nullptr;
    });
    movement::VisitBuffers(step, [&](int b) {
      const movement::Buffer& buffer = draft_.kernel.buffers[b];
      const bool stored = std::any_of(step.stores.begin(), step.stores.end(),
                                      [&](const movement::Store& store) { return store.buffer == b; });
      const bool near = stored ? buffer.scope == Scope::kBlock : buffer.scope == Scope::kKernel || made.count(b) > 0;
      moves = moves || buffer.ring || !near;
    });
    return moves;
  }

  KernelDraft& draft_;
  const te::Program& program_;
  const LayoutOf layout_of_;
  std::vector<PhysicalTe> stages_;
  std::set<TensorId> live_out_;
  RowPlan plan_;
};

}  // namespace

absl::Status SlideWindows(KernelDraft* draft) {
  const std::vector<int> buffer_of = draft->buffer_of;
  const KernelDraft::Saved before = draft->Save();
  const absl::Status status = Slider(draft).Slide();
  draft->scratch_boxes.clear();
  draft->ring_dimensions.clear();
  if (!status.ok()) {
    draft->Restore(before);
    draft->buffer_of = buffer_of;
  }
  return status;
}

}  // namespace fusion
