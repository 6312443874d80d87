#include "compiler/schedule/stitch/plain_sums.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "compiler/movement/read_packed.h"
#include "compiler/movement/vector_form.h"
#include "compiler/schedule/stitch/task_steps.h"
#include "compiler/schedule/tile/tile_form.h"
#include "compiler/schedule/vector/vectorize.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::TensorId;

// The number of the stage that computes the tensor; -1: none of them.
int StageOf(const std::vector<PhysicalTe>& stages, TensorId tensor) {
  const auto at = std::find_if(stages.begin(), stages.end(),
                               [&](const PhysicalTe& stage) { return stage.te.outputs[0] == tensor; });
  return at == stages.end() ? -1 : static_cast<int>(at - stages.begin());
}

bool StoresTo(const movement::Step& step, int buffer) {
  return std::any_of(step.stores.begin(), step.stores.end(),
                     [&](const movement::Store& store) { return store.buffer == buffer; });
}

// The step that alone stores to the buffer, if it can look at its sums; else null.
movement::Step* LookerAt(int buffer, movement::Phase* phase) {
  movement::Step* writer = nullptr;
  for (movement::Step& step : phase->steps) {
    if (!StoresTo(step, buffer)) continue;
    if (writer != nullptr) return nullptr;
    writer = &step;
  }
  const bool looks = writer != nullptr && (writer->Is<movement::RegisterTile>() || writer->Is<movement::ScalarLoops>());
  return looks ? writer : nullptr;
}

bool RunsStepByStep(const movement::Phase& phase) { return phase.row_nests.empty() && phase.task_loops.empty(); }

// Does the buffer hold the stage's operand while the phase runs?
bool IsThere(int buffer, const movement::Kernel& kernel, const movement::Phase& phase) {
  if (movement::IsArgument(kernel.buffers[buffer])) return true;
  return std::any_of(phase.steps.begin(), phase.steps.end(),
                     [&](const movement::Step& step) { return StoresTo(step, buffer); });
}

bool AreThere(const te::Te& te, const KernelDraft& draft, const movement::Phase& phase) {
  bool there = true;
  te::VisitTensors(te, [&](TensorId t) {
    const int buffer = draft.buffer_of[t];
    there = there && buffer >= 0 && IsThere(buffer, draft.kernel, phase);
  });
  return there;
}

// The number of a task of the phase, row-major.
Index NumberOfTask(const movement::Phase& phase) {
  std::vector<Index> at;
  std::vector<int64_t> extents;
  for (const Axis& axis : phase.grid) {
    at.emplace_back(axis);
    extents.push_back(axis.extent);
  }
  return te::Linearize(at, extents);
}

// Can the loop's iterations be the lanes of a vector of sums? The taps lie along it then.
bool AreLanes(const movement::Loop& loop, const movement::Step& step, int64_t lanes) {
  if (loop.limit || loop.axis.extent % lanes != 0 || step.stores.size() != 1) return false;
  const movement::AlongAxis along = movement::AlongAxisOf(step.body[0], loop.axis, lanes);
  return along.vectorizable && along.contiguous_loads > 0 && along.stepped_loads == 0 && HasTileForm(step.body[0]);
}

// The step of the plain sums: in vectors where the taps lie along a loop. (Rows of results that share a recovered tap
// would make it six times as fast, and the text so long that a network of convolutions takes half as long again to
// compile.)
movement::Step StepOfSums(const Nest& nest, const KernelDraft& draft) {
  movement::Step step = PlainStep(nest);
  const int64_t lanes = draft.device.vector_bytes / 4;
  for (const movement::Loop& loop : step.loops) {
    if (AreLanes(loop, step, lanes)) step.strategy = movement::RegisterTile{.lane_axis = loop.axis.id};
  }
  return step;
}

// Adds the buffer of a look, or of the looks of so many tasks.
int AddLook(Scope scope, int64_t elements, movement::Kernel* kernel) {
  kernel->buffers.push_back({.scope = scope, .dtype = DType::kF32, .elements = elements});
  return static_cast<int>(kernel->buffers.size()) - 1;
}

// The step that adds up the looks of the tasks of an earlier phase.
movement::Step SumUp(int looks, int sum, int stage, KernelDraft* draft) {
  const Axis all = draft->axes.New(draft->kernel.buffers[looks].elements);
  movement::Step step;
  step.label = "look";
  step.stage = stage;
  step.reduction.emplace();
  step.reduction->kind = te::ReductionKind::kSum;
  step.reduction->acc = DType::kF32;
  step.reduction->axes = {all};
  step.body = {te::Load(looks, DType::kF32, {Index(all)})};
  step.stores = {{sum, Index(0)}};
  step.store_types = {DType::kF32};
  if (all.extent >= draft->device.vector_bytes / 4) step.strategy = movement::RowReduction{all.id};
  return step;
}

// Makes the steps of the stage and `plain`, which is put behind them, alternatives.
void MakeAlternatives(int look, movement::Step plain, movement::Phase* phase) {
  for (movement::Step& step : phase->steps) {
    if (step.stage == plain.stage) step.runs_if = movement::Condition{look, /*finite=*/true};
  }
  plain.runs_if = movement::Condition{look, /*finite=*/false};
  const auto behind = std::find_if(phase->steps.rbegin(), phase->steps.rend(),
                                   [&](const movement::Step& step) { return step.stage == plain.stage; });
  phase->steps.insert(behind.base(), std::move(plain));
}

// The plain sums over the physical axes of the stage that computes the same results.
PhysicalTe InPlaceOf(const PhysicalTe& stage, const te::Te& logical, const te::Te& plain) {
  PhysicalTe result = stage;
  const auto physical = [&](const Axis& axis) -> const Index* {
    for (size_t a = 0; a < logical.axes.size(); ++a) {
      if (logical.axes[a].id == axis.id) return &stage.coordinates[0][a];
    }
    return nullptr;
  };
  result.te.reduction = plain.reduction;
  result.te.body.clear();
  for (const Scalar& s : plain.body) result.te.body.push_back(te::Substitute(s, physical));
  return result;
}

// Lets the nest read a packed copy of the filter, which the products of the kernel read as well. Returns whether there
// is one that holds each element.
bool ReadPackedFilter(int filter, const movement::Kernel& kernel, Nest* nest) {
  for (int b = 0; b < static_cast<int>(kernel.buffers.size()); ++b) {
    const int number = kernel.buffers[b].packed_from;
    if (number < 0 || kernel.packs[number].source_tensor != kernel.buffers[filter].tensor) continue;
    const auto place = movement::PackedPlaceOf(kernel.packs[number], kernel.buffers[filter].elements);
    if (!place) continue;
    for (Scalar& s : nest->body) {
      s = te::MapLoads(s, [&](const Scalar& load) -> Scalar {
        if (load->tensor != filter) return nullptr;
        auto moved = std::make_shared<te::ScalarNode>(*load);
        moved->tensor = b;
        moved->indices[0] = (*place)(load->indices[0]);
        return moved;
      });
    }
    return true;
  }
  return false;
}

// The phase in which all steps of the stage are; null: there are several.
movement::Phase* PhaseOf(int stage, movement::Kernel* kernel) {
  movement::Phase* found = nullptr;
  for (movement::Phase& phase : kernel->phases) {
    const bool holds = std::any_of(phase.steps.begin(), phase.steps.end(),
                                   [&](const movement::Step& step) { return step.stage == stage; });
    if (!holds) continue;
    if (found != nullptr) return nullptr;
    found = &phase;
  }
  return found;
}

// Lets the plain sums in `nest` stand beside the steps of the stage in the phase `ends`, and the sums of a step of
// `makes`, which is the same phase or an earlier one, decide. Returns whether that is possible.
bool AddAlternative(Nest nest, int stage, movement::Step* looker, movement::Phase* makes, movement::Phase* ends,
                    KernelDraft* draft) {
  if (!ReadPackedFilter(draft->buffer_of[draft->plain_sums->filter], draft->kernel, &nest)) return false;
  const int look = AddLook(Scope::kBlock, 1, &draft->kernel);
  const bool one_phase = makes == ends;
  const int taken = one_phase ? look : AddLook(Scope::kDevice, makes->tasks(), &draft->kernel);
  looker->look = movement::Look{taken, one_phase ? Index(0) : NumberOfTask(*makes)};
  movement::Step step = StepOfSums(nest, *draft);
  step.stage = stage;
  MakeAlternatives(look, std::move(step), ends);
  if (!one_phase) ends->steps.insert(ends->steps.begin(), SumUp(taken, look, stage, draft));
  return true;
}

// As AddPlainSums; returns whether that is possible.
bool AddInTasks(const std::vector<PhysicalTe>& stages, const std::vector<te::Box>& boxes, int first,
                KernelDraft* draft) {
  const PlainSums& plain = *draft->plain_sums;
  movement::Phase& phase = draft->kernel.phases.back();
  const int last = StageOf(stages, plain.te.outputs[0]);
  movement::Phase* const makes = PhaseOf(draft->program.DefiningTe(plain.sums), &draft->kernel);
  if (last < 0 || makes == nullptr || !RunsStepByStep(*makes) || !RunsStepByStep(phase)) return false;
  movement::Step* const looker = LookerAt(draft->buffer_of[plain.sums], makes);
  if (looker == nullptr || !AreThere(plain.te, *draft, phase)) return false;
  const PhysicalTe stage = InPlaceOf(stages[last], draft->program.tes[first + last], plain.te);
  absl::StatusOr<Nest> nest = NestInTask(stage, boxes[last], phase.grid, {}, draft);
  return nest.ok() && AddAlternative(*std::move(nest), first + last, looker, makes, &phase, draft);
}

// Does a step of another stage read the result in the phase in which the stage makes it?
bool IsReadBeside(int result, int stage, const movement::Phase& phase) {
  return std::any_of(phase.steps.begin(), phase.steps.end(), [&](const movement::Step& step) {
    bool reads = false;
    movement::VisitBuffers(step, [&](int b) { reads = reads || b == result; });
    return reads && step.stage != stage;
  });
}

// Shares the nest's outermost axis out among the tasks of the phase, whose grid may have the nest's axes.
void ShareOut(const movement::Phase& phase, AxisSource* axes, Nest* nest) {
  std::map<int, Index> place;
  for (Axis& axis : nest->axes) {
    const Axis whole = axis;
    const bool shared = &axis == nest->axes.data() && phase.tasks() > 1;
    const int64_t share = shared ? (whole.extent + phase.tasks() - 1) / phase.tasks() : whole.extent;
    axis = axes->New(share);
    const Index first = shared ? NumberOfTask(phase) * share : Index(0);
    place[whole.id] = first + Index(axis);
    if (shared && share * phase.tasks() != whole.extent) nest->limits[axis.id] = Index(whole.extent) - first;
  }
  // The limits, too, are over the grid's axes, so they come last.
  const std::map<int, Index> limits = std::exchange(nest->limits, {});
  nest->Substitute([&](const Axis& axis) -> const Index* {
    const auto at = place.find(axis.id);
    return at == place.end() ? nullptr : &at->second;
  });
  nest->limits = limits;
}

bool AddBehindBarrier(KernelDraft* draft) {
  const PlainSums& plain = *draft->plain_sums;
  const int last = draft->program.DefiningTe(plain.te.outputs[0]);
  movement::Phase* const makes = PhaseOf(draft->program.DefiningTe(plain.sums), &draft->kernel);
  movement::Phase* const ends = PhaseOf(last, &draft->kernel);
  if (makes == nullptr || ends == nullptr || makes == ends || !RunsStepByStep(*makes) || !RunsStepByStep(*ends)) {
    return false;
  }
  // All tasks take the same alternative, so results may be shared out in another way.
  const int result = draft->buffer_of[plain.te.outputs[0]];
  if (!movement::IsArgument(draft->kernel.buffers[result]) || IsReadBeside(result, last, *ends)) return false;
  movement::Step* const looker = LookerAt(draft->buffer_of[plain.sums], makes);
  if (looker == nullptr || !AreThere(plain.te, *draft, *ends)) return false;
  absl::StatusOr<PhysicalTe> stage = draft->Physical(plain.te);
  if (!stage.ok()) return false;
  absl::StatusOr<Nest> nest = draft->MakeNest(*stage);
  if (!nest.ok()) return false;
  ShareOut(*ends, &draft->axes, &*nest);
  return AddAlternative(*std::move(nest), last, looker, makes, ends, draft);
}

}  // namespace

void AddPlainSums(const std::vector<PhysicalTe>& stages, const std::vector<te::Box>& boxes, int first,
                  int64_t most_scratch_bytes, KernelDraft* draft) {
  if (draft->plain_sums == nullptr) return;
  const KernelDraft::Saved before = draft->Save();
  if (!AddInTasks(stages, boxes, first, draft) || draft->kernel.PlannedScratchBytes() > most_scratch_bytes) {
    draft->Restore(before);
  }
}

void AddPlainSumsBehindBarrier(KernelDraft* draft) {
  if (draft->plain_sums == nullptr) return;
  const KernelDraft::Saved before = draft->Save();
  if (!AddBehindBarrier(draft)) draft->Restore(before);
}

}  // namespace fusion
