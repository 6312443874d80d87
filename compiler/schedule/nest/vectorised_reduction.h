// Vectorised reduction: the lanes run along one of the reduction's own axes. It serves products with fewer adjacent
// results than a vector has lanes (a convolution to one channel, a row times a matrix column by column) whose operands
// lie contiguous along the reduction.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_VECTORISED_REDUCTION_H_
#define FUSION_COMPILER_SCHEDULE_NEST_VECTORISED_REDUCTION_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest/nest.h"

namespace fusion {

// Makes the axis along which the runtime operands are contiguous the innermost reduction axis, and packs constants that
// are strided along it, adding their buffers to the kernel. StepOf can then vectorise along that axis. Returns false,
// and changes nothing, where there is no such axis.
bool VectoriseReduction(const DeviceModel& device, Nest* nest, movement::Kernel* kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_VECTORISED_REDUCTION_H_
