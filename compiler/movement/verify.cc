#include "compiler/movement/verify.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/movement/reached_range.h"
#include "compiler/movement/row_nest.h"
#include "compiler/movement/task_loop.h"
#include "compiler/movement/work_groups.h"
#include "compiler/te/program/prefix_reduction.h"
#include "runtime/base/status_macros.h"

namespace fusion::movement {
namespace {

bool IsAffine(const te::Index& x) {
  for (const te::Index::Part& part : x.parts()) {
    if (part.term.kind != te::TermKind::kAxis) return false;
  }
  return true;
}

// Visits loads that happen at every point, which excludes those in the branches of an `if`.
void VisitUnconditional(const te::Scalar& s, const std::function<void(const te::ScalarNode&)>& f) {
  f(*s);
  if (s->kind == te::ScalarKind::kIf) return;
  for (const te::Scalar& arg : s->args) VisitUnconditional(arg, f);
}

bool IsLoop(const Step& step, int axis) {
  return std::any_of(step.loops.begin(), step.loops.end(), [&](const Loop& loop) { return loop.axis.id == axis; });
}

bool IsInnermostLoop(const Step& step, int axis) { return !step.loops.empty() && step.loops.back().axis.id == axis; }

// Are the axes of a step's strategy its loops, and does the step have the form that the strategy needs?
bool Fits(const Step&, const ScalarLoops&) { return true; }

bool Fits(const Step& step, const VectorMap& map) { return !step.reduction && IsInnermostLoop(step, map.axis); }

bool Fits(const Step& step, const BlockedTranspose& transpose) {
  return !step.reduction && IsInnermostLoop(step, transpose.axis) && IsLoop(step, transpose.across_axis) &&
         transpose.across_axis != transpose.axis && step.stores.size() == 1 && !step.lane_limit;
}

bool Fits(const Step& step, const RowReduction& row) {
  return step.reduction && !step.reduction->axes.empty() && step.reduction->axes.back().id == row.axis;
}

bool Fits(const Step& step, const PrefixPass& pass) {
  std::vector<te::Axis> axes;
  for (const Loop& loop : step.loops) axes.push_back(loop.axis);
  const std::optional<te::PrefixReduction> prefix =
      step.reduction ? te::PrefixReductionOf(*step.reduction, step.body, axes) : std::nullopt;
  return prefix && step.stores.size() == 1 && !step.lane_limit && pass.vector_axis != prefix->axis &&
         (pass.vector_axis < 0 || IsLoop(step, pass.vector_axis));
}

bool Fits(const Step& step, const RegisterTile& tile) {
  return step.reduction && IsLoop(step, tile.lane_axis) && (tile.row_axis < 0 || IsLoop(step, tile.row_axis)) &&
         (tile.outer_axis < 0 || IsLoop(step, tile.outer_axis));
}

bool Fits(const Step& step, const ThreadgroupTile& tile) {
  const auto is_side = [&](const Loop& loop, int axis, int items, int each, int extent) {
    return loop.axis.id == axis && loop.axis.extent == int64_t{items} * each * extent;
  };
  const size_t n = step.loops.size();
  return step.reduction && !step.reduction->axes.empty() && n >= 2 && step.stores.size() == 1 &&
         step.body.size() == 1 &&
         is_side(step.loops[n - 2], tile.row_axis, tile.item_rows, tile.rows, tile.product.rows) &&
         is_side(step.loops[n - 1], tile.column_axis, tile.item_columns, tile.columns, tile.product.columns) &&
         tile.buffers >= 1 && tile.buffers <= 2 && step.reduction->axes.back().extent % tile.product.depth == 0 &&
         step.body[0]->kind == te::ScalarKind::kOp && step.body[0]->op == te::Op::kMul;
}

bool Fits(const Step& step, const LibraryCall& call) {
  return step.reduction && step.stores.size() == 1 && ResultOf(call) == step.stores[0].buffer &&
         (step.reduction->axes.size() == 1 || !std::holds_alternative<LibraryProduct>(call));
}

bool Fits(const Step&, const RoutineCall&) { return true; }

absl::Status CheckStrategy(const Step& step) {
  if (std::visit([&](const auto& strategy) { return Fits(step, strategy); }, step.strategy)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("movement: step '", step.label, "': the lanes of a ", StrategyName(step),
                                          " step are none of its loops"));
}

// Checks the steps of a kernel in order, and which buffers are written before they are read.
class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  absl::Status Check() {
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Scope scope = kernel_.buffers[b].scope;
      if (scope == Scope::kWarp && kernel_.buffers[b].elements != 1) {
        return absl::InternalError(
            absl::StrCat("movement: buffer b", b, " of scope 'warp' has ", kernel_.buffers[b].elements, " elements"));
      }
      if (scope != Scope::kLane) continue;
      return absl::InternalError(absl::StrCat("movement: buffer b", b,
                                              " lives in scope 'lane'; buffers live in kernel, device, block or warp"));
    }
    RETURN_IF_ERROR(CheckRings(kernel_));
    RETURN_IF_ERROR(CheckNeighbours());
    for (const Phase& phase : kernel_.phases) {
      // Scratch does not outlive its task.
      std::erase_if(written_, [&](int b) { return !IsArgument(kernel_.buffers[b]); });
      for (int s = 0; s < static_cast<int>(phase.steps.size()); ++s) {
        // Registers do not outlive their row.
        if (RowNestOf(phase, s) == nullptr || RowNestAt(phase, s) != nullptr) {
          std::erase_if(written_, [&](int b) { return kernel_.buffers[b].scope == Scope::kWarp; });
        }
        RETURN_IF_ERROR(CheckStepOf(phase, phase.steps[s]));
      }
      RETURN_IF_ERROR(CheckRowNests(phase));
      RETURN_IF_ERROR(CheckTaskLoops(kernel_, phase));
    }
    return absl::OkStatus();
  }

 private:
  // No phase touches what another one beside it writes.
  absl::Status CheckNeighbours() const {
    if (!kernel_.phases.empty() && kernel_.phases[0].beside) {
      return absl::InternalError("movement: nothing runs in front of the first phase, which is to run beside it");
    }
    for (const PhaseRange& range : kernel_.BetweenBarriers()) {
      if (range.end - range.first == 1) continue;
      std::vector<std::set<int>> touched;
      for (size_t p = range.first; p < range.end; ++p) {
        if (LibraryCallOf(kernel_.phases[p]) != nullptr) {
          return absl::InternalError("movement: a library call has a launch of its own, with no phase beside it");
        }
        std::set<int>& of_phase = touched.emplace_back();
        VisitSteps(kernel_.phases[p],
                   [&](const Step& step) { VisitBuffers(step, [&](int b) { of_phase.insert(b); }); });
      }
      for (size_t p = range.first; p < range.end; ++p) {
        for (const int b : WrittenBuffers(kernel_.phases[p])) {
          if (IsBuffer(b) && !IsArgument(kernel_.buffers[b])) continue;  // each task has its own
          for (size_t other = range.first; other < range.end; ++other) {
            if (other == p || touched[other - range.first].count(b) == 0) continue;
            return absl::InternalError(absl::StrCat("movement: phase ", p, " writes b", b, ", which phase ", other,
                                                    " beside it reads or writes"));
          }
        }
      }
    }
    return absl::OkStatus();
  }

  // Row nests hold steps of the phase, in order, and only they use registers.
  absl::Status CheckRowNests(const Phase& phase) const {
    int end = 0;
    for (const RowNest& nest : phase.row_nests) {
      if (nest.first < end || nest.count < 1 || nest.loops < 0 || nest.team < 1 || (nest.team & (nest.team - 1)) != 0 ||
          nest.first + nest.count > static_cast<int>(phase.steps.size())) {
        return absl::InternalError("movement: a row nest has no steps of its own, or no team");
      }
      end = nest.first + nest.count;
      if (const absl::Status rows = CheckRowNest(kernel_, phase, nest); !rows.ok()) {
        return absl::InternalError(absl::StrCat("movement: a row nest cannot run row by row: ", rows.message()));
      }
    }
    for (int s = 0; s < static_cast<int>(phase.steps.size()); ++s) {
      const Step& step = phase.steps[s];
      const auto uses_registers = [&](const Step& one) {
        bool uses = false;
        VisitBuffers(one, [&](int b) { uses = uses || (IsBuffer(b) && kernel_.buffers[b].scope == Scope::kWarp); });
        return uses;
      };
      const std::vector<Step>& copies = SharedCopiesOf(step);
      const bool uses = uses_registers(step) || std::any_of(copies.begin(), copies.end(), uses_registers);
      if (!uses || RowNestOf(phase, s) != nullptr) continue;
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' uses a buffer of scope 'warp' outside a row nest"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckStepOf(const Phase& phase, const Step& step) {
    if (step.Is<LibraryCall>() && (kernel_.persistent || phase.steps.size() != 1 || !phase.grid.empty())) {
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' of a library is not alone in a phase without a grid"));
    }
    std::vector<te::Axis> around;
    if (step.turn) around.push_back(step.turn->axis);
    if (!SharedCopiesOf(step).empty() && step.reduction) {
      around.insert(around.end(), step.reduction->axes.begin(), step.reduction->axes.end() - 1);
      for (const Loop& loop : step.loops) around.push_back(loop.axis);
    }
    for (const Step& shared_copy : SharedCopiesOf(step)) RETURN_IF_ERROR(CheckStep(phase, shared_copy, around));
    around.clear();
    if (step.turn) around.push_back(step.turn->axis);
    return CheckStep(phase, step, around);
  }

  // `around`: the axes around a step, and around its shared-memory copies.
  absl::Status CheckStep(const Phase& phase, const Step& step, const std::vector<te::Axis>& around) {
    std::set<int> axes;
    for (const te::Axis& axis : phase.grid) axes.insert(axis.id);
    for (const te::Axis& axis : around) axes.insert(axis.id);
    for (const Loop& loop : step.loops) axes.insert(loop.axis.id);
    std::set<int> with_reduction = axes;
    if (step.reduction) {
      for (const te::Axis& axis : step.reduction->axes) with_reduction.insert(axis.id);
    }
    status_ = absl::OkStatus();
    RETURN_IF_ERROR(CheckLook(phase, step));
    const auto* routine = step.As<RoutineCall>();
    if (routine != nullptr) RETURN_IF_ERROR(CheckRoutine(*routine));
    for (const te::Scalar& s : step.body) CheckScalar(step, s, with_reduction);
    for (const te::Scalar& s : step.then) CheckScalar(step, s, axes);
    for (const Store& store : step.stores) {
      if (!IsBuffer(store.buffer)) {
        return absl::InternalError(absl::StrCat("movement: step '", step.label, "' stores into no buffer"));
      }
      CheckIndex(step, store.address, axes, "a store");
      // A routine's addresses are where its tensors begin, even for tensors without elements.
      if (routine == nullptr) CheckBounds(phase, step, store.buffer, store.address);
      written_.insert(store.buffer);
    }
    if (step.lane_limit) CheckIndex(step, step.lane_limit->index, axes, "the limit of lanes");
    if (const Bound* const limit = StoreLimitOf(step)) CheckIndex(step, limit->index, axes, "the limit of stores");
    for (const std::vector<te::Scalar>* scalars : {&step.body, &step.then}) {
      for (const te::Scalar& s : *scalars) {
        VisitUnconditional(s, [&](const te::ScalarNode& node) {
          if (!status_.ok() || node.kind != te::ScalarKind::kLoad) return;
          CheckBounds(phase, step, node.tensor, node.indices[0]);
        });
      }
    }
    if (status_.ok()) status_ = CheckStrategy(step);
    if (step.stores.size() != step.store_types.size() || step.stores.empty()) {
      status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' has no consistent stores"));
    }
    return status_;
  }

  // A look is an f32, in a task's scratch or handed on, and whoever waits for one reads it behind that.
  absl::Status CheckLook(const Phase& phase, const Step& step) {
    const auto is_look = [&](int b) { return IsBuffer(b) && kernel_.buffers[b].dtype == DType::kF32; };
    if (step.runs_if && (!is_look(step.runs_if->buffer) || written_.count(step.runs_if->buffer) == 0)) {
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' waits for a look that no step in front of it takes"));
    }
    const bool alone = RowNestOf(phase, NumberOf(phase, step)) == nullptr && !step.turn;
    if ((step.runs_if || step.look) && !alone) {
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' of a row nest or a loop looks at sums, or waits for a look"));
    }
    if (!step.look) return absl::OkStatus();
    const bool sums =
        step.reduction && step.reduction->kind == te::ReductionKind::kSum && step.reduction->acc == DType::kF32;
    if (!sums || !(step.Is<RegisterTile>() || step.Is<ScalarLoops>())) {
      return absl::InternalError(absl::StrCat("movement: step '", step.label, "' has no sums to look at"));
    }
    if (!is_look(step.look->buffer) || kernel_.buffers[step.look->buffer].scope == Scope::kKernel) {
      return absl::InternalError(absl::StrCat("movement: step '", step.label, "' has no buffer of f32 for its look"));
    }
    std::set<int> grid;
    for (const te::Axis& axis : phase.grid) grid.insert(axis.id);
    CheckIndex(step, step.look->address, grid, "a look");
    CheckBounds(phase, step, step.look->buffer, step.look->address);
    written_.insert(step.look->buffer);
    return absl::OkStatus();
  }

  // -1 for a shared-memory copy, which is inside of a step.
  static int NumberOf(const Phase& phase, const Step& step) {
    const bool inside = phase.steps.data() <= &step && &step < phase.steps.data() + phase.steps.size();
    return inside ? static_cast<int>(&step - phase.steps.data()) : -1;
  }

  bool IsBuffer(int buffer) const { return buffer >= 0 && buffer < static_cast<int>(kernel_.buffers.size()); }
  bool MayBeRead(int buffer) const { return kernel_.buffers[buffer].scope == Scope::kKernel || written_.count(buffer); }

  absl::Status CheckRoutine(const RoutineCall& routine) const {
    for (int b : routine.inputs) {
      if (IsBuffer(b) && MayBeRead(b)) continue;
      return absl::InternalError(absl::StrCat("movement: routine '", routine.name, "' reads no buffer b", b));
    }
    return absl::OkStatus();
  }

  // `known`: the axes that loops bind.
  void CheckIndex(const Step& step, const te::Index& x, const std::set<int>& known, const char* what) {
    std::vector<te::Axis> used;
    te::CollectAxes(x, &used);
    for (const te::Axis& axis : used) {
      if (known.count(axis.id)) continue;
      status_ = absl::InternalError(absl::StrCat("movement: ", what, " of step '", step.label, "' uses axis i", axis.id,
                                                 ", which no loop binds"));
    }
  }

  void CheckScalar(const Step& step, const te::Scalar& s, const std::set<int>& known) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      if (!IsBuffer(node.tensor) || node.indices.size() != 1) {
        status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' loads from no buffer"));
        return;
      }
      CheckIndex(step, node.indices[0], known, "a load");
      if (!MayBeRead(node.tensor)) {
        status_ = absl::InternalError(
            absl::StrCat("movement: step '", step.label, "' reads b", node.tensor, " before it is written"));
      }
    });
  }

  // Affine addresses are exact where no predicate cuts them short; others are not checked.
  void CheckBounds(const Phase& phase, const Step& step, int buffer, const te::Index& address) {
    const bool whole =
        !step.lane_limit && StoreLimitOf(step) == nullptr && (!step.reduction || step.reduction->pred.empty());
    if (!whole || !IsAffine(address)) return;
    const std::optional<te::Interval> reached = ReachedRange(address, step.loops);
    if (!reached) return;
    const te::Interval range = *reached;
    // The last group of four in a row may reach into the slack behind the buffer; the other operand is zero there.
    const auto* tile = step.As<RegisterTile>();
    const int64_t slack = tile != nullptr && tile->dot_axis >= 0 ? kDotLength - 1 : 0;
    if (range.lo > range.hi || (range.lo >= 0 && range.hi < kernel_.buffers[buffer].elements + slack)) return;
    bool empty = false;
    for (const te::Index::Part& part : address.parts()) empty = empty || part.term.axis.extent == 0;
    if (empty || phase.tasks() == 0) return;
    status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' addresses b", buffer, "[", range.lo,
                                               "..", range.hi, "] of ", kernel_.buffers[buffer].elements, " elements"));
  }

  const Kernel& kernel_;
  std::set<int> written_;
  absl::Status status_;  // of the step that is being checked: its last fault
};

// Phase loops are ascending and disjoint, in a persistent kernel, and phases on both sides of an edge do not run beside
// each other. A buffer that moves with a loop is an argument that its phases alone name.
absl::Status CheckPhaseLoops(const Kernel& kernel) {
  const auto bad = [](size_t loop, const char* why) {
    return absl::InternalError(absl::StrCat("movement: phase loop ", loop, " ", why));
  };
  size_t behind = 0;
  for (size_t l = 0; l < kernel.phase_loops.size(); ++l) {
    const PhaseLoop& loop = kernel.phase_loops[l];
    if (!kernel.persistent) return bad(l, "stands in a kernel that is not persistent");
    if (loop.first < behind || loop.end <= loop.first || loop.end > kernel.phases.size() || loop.trips < 1) {
      return bad(l, "has no phases of its own, or no iterations");
    }
    for (const size_t edge : {loop.first, loop.end}) {
      if (edge < kernel.phases.size() && kernel.phases[edge].beside) return bad(l, "parts phases beside each other");
    }
    behind = loop.end;
  }
  const int loops = static_cast<int>(kernel.phase_loops.size());
  for (const Buffer& buffer : kernel.buffers) {
    const bool may_move = buffer.scope == Scope::kKernel && !buffer.is_constant && buffer.moves_with < loops;
    if (buffer.moves_with < 0 || may_move) continue;
    return bad(static_cast<size_t>(buffer.moves_with), "does not exist, or moves what is no value");
  }
  absl::Status status;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    VisitSteps(kernel.phases[p], [&](const Step& step) {
      VisitBuffers(step, [&](int b) {
        const int loop = b < 0 || b >= static_cast<int>(kernel.buffers.size()) ? -1 : kernel.buffers[b].moves_with;
        if (loop < 0 || (kernel.phase_loops[loop].first <= p && p < kernel.phase_loops[loop].end)) return;
        status = absl::InternalError(
            absl::StrCat("movement: step '", step.label, "' uses b", b, ", which moves with another loop"));
      });
    });
  }
  return status;
}

}  // namespace

absl::Status Verify(const Kernel& kernel) {
  if (kernel.persistent && kernel.phase_loops.empty() && kernel.BetweenBarriers().size() < 2) {
    return absl::InternalError("movement: a persistent kernel needs a barrier between two phases");
  }
  RETURN_IF_ERROR(CheckPhaseLoops(kernel));
  return Verifier(kernel).Check();
}

}  // namespace fusion::movement
