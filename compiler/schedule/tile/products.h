// Stages that are products.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_PRODUCTS_H_
#define FUSION_COMPILER_SCHEDULE_TILE_PRODUCTS_H_

#include "compiler/cost/device_model.h"
#include "compiler/te/program/program.h"

namespace fusion {

// Is the te a sum of products of two or more loads?
bool IsProduct(const te::Te& te);

// Is the te a sum of products whose operands are all read again and again? Such a stage needs a phase of its own: only
// a register tile keeps the core busy with it, and a plain loop nest has none. A product with less work than a task is
// worth does not count, because it is done before a phase has begun.
bool WantsRegisterTile(const te::Program& program, const te::Te& te, const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_PRODUCTS_H_
