// Chooses how one nest inside a task runs: in vectors along the innermost axis, as a reduction along its contiguous
// axis, or in plain loops.
#ifndef FUSION_COMPILER_SCHEDULE_VECTOR_VECTORIZE_H_
#define FUSION_COMPILER_SCHEDULE_VECTOR_VECTORIZE_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// All of the nest's axes become plain loops of the step.
movement::Step PlainStep(const Nest& nest);

// Returns the same step, in vectors where that is possible.
movement::Step StepOf(const Nest& nest, const DeviceModel& device);

// Sets `step` to a prefix reduction (over what is before each element, te/program/prefix_reduction.h) in one pass.
// Returns false, and changes nothing, where the nest is none.
bool PrefixStep(const Nest& nest, const DeviceModel& device, movement::Step* step);

// Chooses the strategy of a step without a reduction: vectors along the innermost loop, tiles transposed in registers,
// or plain loops.
void VectorizeMap(const DeviceModel& device, movement::Step* step);

// Makes a grid for a nest that is a kernel alone: moves outer axes (or chunks of the only axis) out of `step`'s loops
// into the grid until there are enough tasks and each is worth a call. How many are enough is a choice ("tasks"), and
// so is, thereby, how many threads take part.
void MoveLoopsToGrid(movement::Step* step, double cost_per_point, const DeviceModel& device, AxisSource* axes,
                     ChoiceLog* choices, std::vector<te::Axis>* grid);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_VECTOR_VECTORIZE_H_
