// Stages that are products.
#ifndef FUSION_COMPILER_SCHEDULE_PRODUCTS_H_
#define FUSION_COMPILER_SCHEDULE_PRODUCTS_H_

#include "compiler/cost/device_model.h"
#include "compiler/te/program.h"

namespace fusion {

// A sum of products of two or more loads.
bool IsProduct(const te::Te& te);

// A sum of products whose operands are all read again and again. Only a register tile keeps such a stage busy, and a
// loop nest of its own has none. Less work than a task's is done before a phase of its own has begun.
bool WantsRegisterTile(const te::Program& program, const te::Te& te, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_PRODUCTS_H_
