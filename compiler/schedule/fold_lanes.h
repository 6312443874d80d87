// Folds with the lanes along one of their own axes: a product with fewer results beside each other than a vector has
// lanes (a convolution to one channel, a row times a matrix column by column), whose operands lie contiguous along the
// fold.
#ifndef FUSION_COMPILER_SCHEDULE_FOLD_LANES_H_
#define FUSION_COMPILER_SCHEDULE_FOLD_LANES_H_

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest.h"

namespace fusion {

// Makes the axis along which the runtime operands are contiguous the fold's innermost one, and packs constants that are
// strided along it, adding their buffers to the kernel: StepOf can fold along it then. False, and nothing changed,
// where there is no such axis.
bool FoldAlongLanes(const DeviceModel& device, Nest* nest, movement::Kernel* kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_FOLD_LANES_H_
