// Prints what one task of a phase does: its place in the grid, then its steps one after another.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
#define FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_

#include <cstdint>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// Who executes a task.
struct TaskShape {
  int64_t lanes = 1;  // elements of a vector
  // Work-items that share the task, a power of two. 1: one executes it alone. More: each step's points are dealt out
  // among them, `lid` is a work-item's number, BARRIER stands between steps, and `partials` is memory of the group, 8
  // bytes a work-item, through which FOLD_TEAM adds up a fold that some of them share.
  int group = 1;
  int unroll = 0;  // of the loop over a step's points, where they are dealt out; 0: as the compiler likes
  // The language has loads and stores of a part of a vector (ld_f32_part): the rest of a row that would call functions
  // of the library is a vector, too.
  bool parts = false;
};

// `task`, a variable of the text, is the task's number.
void PrintTask(const movement::Kernel& kernel, const movement::Phase& phase, const TaskShape& shape, CodeWriter* out);

// A loop nest over `loops`. With a group, one loop over their points, dealt out to the work-items; the innermost axis
// is that of neighbours; `item` is the work-item's number, a variable of the text. `unroll`: how often the text of each
// loop is repeated, 0: as the compiler likes. Returns how many Close() end it.
int OpenPoints(const std::vector<movement::Loop>& loops, const movement::Kernel& kernel, int group, CodeWriter* out,
               int unroll = 0, const std::string& item = "lid");

// Whether 32 bits are too few for an index of the phase's loops, tasks dealt out to groups of `group` included.
bool NeedsWideIndices(const movement::Phase& phase, int group);

// The results of a fold at the point where the step's loops are: `then` of the accumulators, stored.
void PrintResult(const movement::Kernel& kernel, const movement::Step& step, const std::string& acc, int* next_temp,
                 CodeWriter* out);

// One step of a task.
void PrintStep(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out);

// "x3". Not "i": i8, i16, i32 and i64 are types.
std::string AxisText(int axis);
// How often the loop runs.
std::string LimitText(const movement::Loop& loop, const movement::Kernel& kernel);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_PRINT_TASK_H_
