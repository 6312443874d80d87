// Chooses how one nest inside a task runs: vectors along the innermost axis, a fold along its contiguous axis, or plain
// loops.
#ifndef FUSION_COMPILER_SCHEDULE_VECTORIZE_H_
#define FUSION_COMPILER_SCHEDULE_VECTORIZE_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// All of the nest's axes become plain loops of the step.
movement::Step PlainStep(const Nest& nest);

// The same, in vectors where that is possible.
movement::Step StepOf(const Nest& nest, const DeviceModel& device);

// A fold of what is before each element (movement/prefix_fold.h), in one pass; false, and nothing has changed: it is
// none.
bool PrefixStep(const Nest& nest, const DeviceModel& device, movement::Step* step);

// Chooses the strategy of a step without a fold: vectors along the innermost loop, blocks transposed in registers, or
// plain loops.
void VectorizeMap(const DeviceModel& device, movement::Step* step);

// A grid for a nest that is a kernel alone: outer axes (or chunks of the only axis) are moved out of `step`'s loops
// into the grid until there are tasks enough and each is worth a call. How many are enough is a choice, and with it how
// many threads take part.
void MoveLoopsToGrid(movement::Step* step, double cost_per_point, const DeviceModel& device, AxisSource* axes,
                     ChoiceLog* choices, std::vector<te::Axis>* grid);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_VECTORIZE_H_
