#include "compiler/backends/text/print_task.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "compiler/backends/text/print_nest.h"
#include "compiler/backends/text/print_threadgroup_tile.h"
#include "compiler/backends/text/print_tile.h"
#include "compiler/backends/text/print_transpose.h"
#include "runtime/base/check.h"

namespace fusion::text {
namespace {

// The condition under which the step runs; empty: it always does.
std::string ConditionText(const movement::Step& step) {
  if (!step.runs_if) return "";
  return absl::StrCat("if (", step.runs_if->finite ? "" : "!", "(b", step.runs_if->buffer, "[0] == 0))");
}

void PrintStep(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out) {
  out->Open(ConditionText(step));
  if (movement::IsRare(step) && !shape.rare_steps.empty()) {
    out->Line(shape.rare_steps);
    return out->Close();
  }
  if (const auto* transpose = step.As<movement::BlockedTranspose>()) {
    PrintTranspose(kernel, step, *transpose, shape.lanes, next_temp, out);
  } else if (const auto* tile = step.As<movement::RegisterTile>()) {
    PrintTile(kernel, step, *tile, shape, next_temp, out);
  } else if (const auto* threadgroup = step.As<movement::ThreadgroupTile>()) {
    PrintThreadgroupTile(kernel, step, *threadgroup, {shape.lanes, shape.work_group_size}, next_temp, out);
  } else {
    PrintNest(kernel, step, shape, next_temp, out);
  }
  out->Close();
}

// Declares the registers that steps of the nest fill for a row.
void DeclareRegisters(const movement::Kernel& kernel, absl::Span<const movement::Step> steps, CodeWriter* out) {
  std::set<int> registers;
  for (const movement::Step& step : steps) {
    for (const movement::Store& store : step.stores) {
      if (kernel.buffers[store.buffer].scope == Scope::kWarp) registers.insert(store.buffer);
    }
  }
  for (const int b : registers) out->Line(absl::StrCat(StorageType(kernel.buffers[b].dtype), " b", b, "[1];"));
}

// The memory that the steps since the last barrier of the team have reached.
class Reached {
 public:
  explicit Reached(const movement::Kernel& kernel) : kernel_(kernel) {}

  // Must the team wait before this step, because it reads what other work-items wrote, or overwrites what they read?
  bool MustWait(const movement::Step& step) {
    std::set<int> reached, written;
    movement::VisitBuffers(step, [&](int b) { reached.insert(b); });
    for (const movement::Store& store : step.stores) written.insert(store.buffer);
    const auto in_memory = [&](int b) { return kernel_.buffers[b].scope != Scope::kWarp; };
    const bool wait =
        std::any_of(reached.begin(), reached.end(), [&](int b) { return in_memory(b) && written_.count(b) > 0; }) ||
        std::any_of(written.begin(), written.end(), [&](int b) { return in_memory(b) && reached_.count(b) > 0; });
    if (wait) written_.clear(), reached_.clear();
    reached_.merge(reached);
    written_.merge(written);
    return wait;
  }

 private:
  const movement::Kernel& kernel_;
  std::set<int> reached_, written_;
};

// Prints a row nest: loops over rows around its steps, which no longer have them.
void PrintRowNest(const movement::Kernel& kernel, const movement::Phase& phase, const movement::RowNest& nest,
                  const TaskShape& shape, int* next_temp, CodeWriter* out) {
  std::vector<movement::Step> steps(phase.steps.begin() + nest.first, phase.steps.begin() + nest.first + nest.count);
  const std::vector<movement::Loop> rows(steps[0].loops.begin(), steps[0].loops.begin() + nest.loops);
  for (movement::Step& step : steps) step.loops.erase(step.loops.begin(), step.loops.begin() + nest.loops);
  if (shape.work_group_size == 1) {
    FUSION_CHECK(nest.team == 1, "a single work-item has no team");
    const int depth = OpenPoints(rows, kernel, 1, out, shape.unroll);
    DeclareRegisters(kernel, steps, out);
    for (const movement::Step& step : steps) {
      // Without it the compiler keeps what several steps load of a long row in registers, and spills it.
      if (&step != &steps.front()) out->Line("STEP_BOUNDARY");
      PrintStep(kernel, step, shape, next_temp, out);
    }
    for (int d = 0; d < depth; ++d) out->Close();
    return;
  }
  const int team = nest.team;
  FUSION_CHECK(team > 1 && team <= shape.work_group_size, "teams of a row nest are parts of the work-group");
  const int64_t teams = shape.work_group_size / team, points = Points(rows);
  TaskShape of_row = shape;
  of_row.work_group_size = team;
  of_row.item = absl::StrCat("rank", (*next_temp)++);
  of_row.team = {shape.work_group_size, ""};
  std::vector<std::string> conditions;
  if (points % teams != 0) conditions.push_back(absl::StrCat("point < ", points));
  for (const movement::Loop& loop : rows) {
    if (!loop.limit) continue;
    conditions.push_back(absl::StrCat(AxisText(loop.axis.id), " < ", IndexText(*loop.limit, AxisText, kernel)));
  }
  out->Line(absl::StrCat("const int ", of_row.item, " = lid % ", team, ";"));
  out->Open(absl::StrCat("for (ix turn = 0; turn < ", (points + teams - 1) / teams, "; ++turn)"));
  out->Line(absl::StrCat("const ix point = lid / ", team, " + turn * ", teams, ";"));
  TakePointApart(rows, out);
  if (!conditions.empty()) {
    of_row.team->row_exists = absl::StrCat("row", (*next_temp)++);
    out->Line(absl::StrCat("const bool ", of_row.team->row_exists, " = ", absl::StrJoin(conditions, " && "), ";"));
  }
  DeclareRegisters(kernel, steps, out);
  Reached reached(kernel);
  for (const movement::Step& step : steps) {
    if (reached.MustWait(step)) out->Line(absl::StrCat("TEAM_BARRIER(", team, ")"));
    PrintStep(kernel, step, of_row, next_temp, out);
  }
  out->Close();
}

// Prints a task loop. Its variable is the same for all work-items, so that barriers may stand inside its conditions;
// the next iteration overwrites what others may still read, so the last step of an iteration has a barrier behind it,
// too.
void PrintTaskLoop(const movement::Kernel& kernel, const movement::Phase& phase, const movement::TaskLoop& loop,
                   const TaskShape& shape, int* next_temp, CodeWriter* out) {
  out->Open(absl::StrCat("for (ix iteration = 0; iteration < ", loop.iterations, "; ++iteration)"));
  for (int s = loop.first; s < loop.first + loop.count; ++s) {
    const movement::Turn& turn = *phase.steps[s].turn;
    const int64_t end = turn.first + turn.axis.extent;
    std::vector<std::string> conditions;
    if (turn.first > 0) conditions.push_back(absl::StrCat("iteration >= ", turn.first));
    if (end < loop.iterations) conditions.push_back(absl::StrCat("iteration < ", end));
    out->Open(conditions.empty() ? "" : absl::StrCat("if (", absl::StrJoin(conditions, " && "), ")"));
    out->Line(absl::StrCat("const ix ", AxisText(turn.axis.id), " = iteration - ", turn.first, ";"));
    PrintStep(kernel, phase.steps[s], shape, next_temp, out);
    out->Close();
    if (shape.work_group_size > 1) out->Line("BARRIER");
  }
  out->Close();
}

}  // namespace

bool NeedsWideIndices(const movement::Phase& phase, int work_group_size) {
  constexpr double kMost = 1 << 30;  // a loop may step past its end, by less than this
  double most = static_cast<double>(phase.tasks()) * work_group_size;
  for (const movement::Step& step : phase.steps) {
    double points = 1, reduction = 1;
    for (const movement::Loop& loop : step.loops) points *= static_cast<double>(loop.axis.extent);
    for (size_t a = 0; step.reduction && a < step.reduction->axes.size(); ++a) {
      reduction *= static_cast<double>(step.reduction->axes[a].extent);
    }
    most = std::max({most, points, reduction});
  }
  return most > kMost;
}

void PrintTask(const movement::Kernel& kernel, const movement::Phase& phase, const TaskShape& shape, CodeWriter* out) {
  int64_t inner = phase.tasks();
  for (const te::Axis& axis : phase.grid) {
    inner /= axis.extent;
    out->Line(absl::StrCat("const ix ", AxisText(axis.id), " = task / ", inner, " % ", axis.extent, ";"));
  }
  int next_temp = 0;
  for (int s = 0; s < static_cast<int>(phase.steps.size()); ++s) {
    if (shape.work_group_size > 1 && s > 0) out->Line("BARRIER");
    const movement::TaskLoop* const loop = movement::TaskLoopOf(phase, s);
    if (loop != nullptr) {
      PrintTaskLoop(kernel, phase, *loop, shape, &next_temp, out);
      s += loop->count - 1;
    } else if (const movement::RowNest* nest = movement::RowNestAt(phase, s)) {
      out->Open("");
      PrintRowNest(kernel, phase, *nest, shape, &next_temp, out);
      out->Close();
      s += nest->count - 1;
    } else {
      PrintStep(kernel, phase.steps[s], shape, &next_temp, out);
    }
  }
}

}  // namespace fusion::text
