// Prints what one task of a phase does: its place in the grid, then its steps, one after another.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_

#include <cstdint>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// Who executes a task.
struct TaskShape {
  int64_t lanes = 1;  // elements of a vector
  // Work-items that share the task, a power of two. 1: one work-item executes the task alone. More: each step's points
  // are distributed over the work-items, `lid` is a work-item's number, and BARRIER stands between steps. `partials` is
  // shared memory, 8 bytes for each work-item, through which FOLD_TEAM combines a reduction that some of them share.
  int group = 1;
  int unroll = 0;  // of the loop over a step's points, where they are distributed; 0: the compiler decides
  // Does the language have loads and stores of a part of a vector (ld_f32_part)? Then the rest of a row that would call
  // library functions is a vector, too.
  bool parts = false;
};

// The text must define the variable `task`, the task's number.
void PrintTask(const movement::Kernel& kernel, const movement::Phase& phase, const TaskShape& shape, CodeWriter* out);

// Opens a loop nest over `loops`. With a group, opens one loop over their points, distributed over the work-items so
// that neighbouring work-items have neighbouring points of the innermost axis; `item` is the text's variable for the
// work-item's number. `unroll`: how often the text of each loop is repeated, 0: the compiler decides. Returns how many
// Close() end it.
int OpenPoints(const std::vector<movement::Loop>& loops, const movement::Kernel& kernel, int group, CodeWriter* out,
               int unroll = 0, const std::string& item = "lid");

// Are 32 bits too few for an index of the phase's loops, including the tasks of work-groups of size `group`?
bool NeedsWideIndices(const movement::Phase& phase, int group);

// Prints and stores the results of a reduction at the point where the step's loops are: `then` of the accumulators.
void PrintResult(const movement::Kernel& kernel, const movement::Step& step, const std::string& acc, int* next_temp,
                 CodeWriter* out);

// Prints one step of a task.
void PrintStep(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out);

// Name of an axis: "x3". "i3" would be no good: i8, i16, i32 and i64 are types.
std::string AxisText(int axis);
// How often the loop runs.
std::string LimitText(const movement::Loop& loop, const movement::Kernel& kernel);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
