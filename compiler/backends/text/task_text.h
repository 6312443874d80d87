// The words in which every printer of a task writes: names of axes, ends of loops, and loops over points that
// work-items share.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_TASK_TEXT_H_
#define FUSION_COMPILER_BACKENDS_TEXT_TASK_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// Who executes a task.
struct TaskShape {
  int64_t lanes = 1;  // elements of a vector
  // Work-items that share the task, a power of two. 1: one work-item executes the task alone. More: each step's points
  // are distributed over the work-items, `lid` is a work-item's number, and BARRIER stands between steps. `partials` is
  // shared memory, 8 bytes for each work-item, through which REDUCE_TEAM combines a reduction that some of them share.
  int work_group_size = 1;
  // Set for the steps of a row nest where a team of the work-group's items computes each row. `work_group_size` is then
  // the team's, and `item` the variable for an item's number in it; `group` is the work-group's, and all of its items
  // run through the text, since there are barriers in it, but those of a team whose row does not exist compute nothing:
  // `row_exists` is the text of that condition.
  struct Team {
    int group = 1;
    std::string row_exists;
  };
  std::optional<Team> team = std::nullopt;
  std::string item = "lid";
  int unroll = 0;  // of the loop over a step's points, where they are distributed; 0: the compiler decides
  // Does the language have loads and stores of a part of a vector (ld_f32_part)? Then the rest of a row that would call
  // library functions is a vector, too.
  bool parts = false;
  // The call that runs a task's rare steps, where they are a function of their own, so that they are no part of the
  // text that the compiler has to make fast; empty: they stand where they run.
  std::string rare_steps = {};
  // Has the device an instruction that adds four products of bytes in each lane? Otherwise register tiles widen bytes.
  bool byte_dots = true;
};

// Name of an axis: "x3". "i3" would be no good: i8, i16, i32 and i64 are types.
std::string AxisText(int axis);
// How often the loop runs.
std::string LimitText(const movement::Loop& loop, const movement::Kernel& kernel);

// Text of `index < limit`.
std::string BoundText(const movement::Bound& bound, const AxisName& name, const movement::Kernel& kernel);
// Text of the vector `value` with zeros in its lanes past the bound.
std::string MaskedText(const movement::Bound& bound, const std::string& value, DType dtype,
                       const movement::Kernel& kernel);

// The number of points of the loops, where none has a limit.
int64_t Points(const std::vector<movement::Loop>& loops);

// Opens a loop nest over `loops`. With a group, opens one loop over their points, distributed over the work-items so
// that neighbouring work-items have neighbouring points of the innermost axis; `item` is the text's variable for the
// work-item's number. `unroll`: how often the text of each loop is repeated, 0: the compiler decides. Returns how many
// Close() end it.
int OpenPoints(const std::vector<movement::Loop>& loops, const movement::Kernel& kernel, int work_group_size,
               CodeWriter* out, int unroll = 0, const std::string& item = "lid");

// Prints the coordinates of `point`, a variable of the text that counts the points of the loops.
void TakePointApart(const std::vector<movement::Loop>& loops, CodeWriter* out);

// Exchanges rows and lanes of as many vectors as there are lanes: prints the shuffles, and returns the names of vectors
// of which number i has lane i of every row. `zip` begins the names of the shuffles: "zip_", "zip_vb_".
std::vector<std::string> ExchangeLanes(std::vector<std::string> rows, const std::string& type, const std::string& zip,
                                       int* next_temp, CodeWriter* out);

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_TASK_TEXT_H_
