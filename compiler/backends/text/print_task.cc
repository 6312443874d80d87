#include "compiler/backends/text/print_task.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/print_nest.h"
#include "compiler/backends/text/print_threadgroup_tile.h"
#include "compiler/backends/text/print_tile.h"
#include "compiler/backends/text/print_transpose.h"

namespace fusion::text {
namespace {

void PrintStep(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out) {
  out->Open("");
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
  for (const movement::Step& step : phase.steps) {
    if (shape.work_group_size > 1 && &step != &phase.steps.front()) out->Line("BARRIER");
    PrintStep(kernel, step, shape, &next_temp, out);
  }
}

}  // namespace fusion::text
