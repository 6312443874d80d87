// Spans of a dimension whose origins depend on the number of a task. Bounds inference gives symbolic origins; where a
// window's border is concerned, what counts is the origin in each task, so these functions enumerate the tasks.
#ifndef FUSION_COMPILER_TE_RANGES_TASK_SPANS_H_
#define FUSION_COMPILER_TE_RANGES_TASK_SPANS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/te/ranges/bounds.h"

namespace fusion::te {

// The value of an index in each task, where it depends on the number of tasks along one axis at most.
struct TaskValues {
  std::optional<Axis> axis;     // nullopt: the index is a constant, and there is one value
  std::vector<int64_t> values;  // by number
};

// Returns nullopt for an index with a load, of several axes, or of more tasks than are worth enumerating.
std::optional<TaskValues> ValuesOf(const Index& index);

// Returns an index that has these values: steps of one length, but for a few tasks at the borders. nullopt where too
// many tasks take another step.
std::optional<Index> IndexOf(const TaskValues& values);

// Returns whether [origin, origin + length) lies in [0, extent) in every task; false where that cannot be decided.
bool LiesInside(const Span& span, int64_t extent);

// Moves the span into [0, extent) in the tasks in which it leaves it, so that in each task it covers all that it
// covered of [0, extent). A span that is longer than the extent becomes [0, extent). nullopt where its origins cannot
// be enumerated or written down.
std::optional<Span> MovedInside(const Span& span, int64_t extent);

// Returns a span inside [0, extent) that covers all that the two cover of it in each task, for spans whose distance
// depends on the task (Hull fails for these). nullopt as above.
std::optional<Span> HullInside(const Span& a, const Span& b, int64_t extent);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_RANGES_TASK_SPANS_H_
