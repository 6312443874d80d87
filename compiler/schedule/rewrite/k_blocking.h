// K-blocking: cuts long products along the reduction. A matrix product whose left operand does not stay in the
// second-level cache reads all of it again for every panel of its weights. After cutting along k each slice of the
// operand does stay, and the partial result, which is smaller, travels instead (the outermost loop of Goto and van de
// Geijn's scheme).
#ifndef FUSION_COMPILER_SCHEDULE_REWRITE_K_BLOCKING_H_
#define FUSION_COMPILER_SCHEDULE_REWRITE_K_BLOCKING_H_

#include "compiler/cost/device_model.h"
#include "compiler/schedule/choices.h"
#include "compiler/te/program/program.h"

namespace fusion {

// `%c = sum(k<3072) a·b` becomes `%t = sum(k<1024) …`, `%u = %t + sum …`, `%c = %u + sum …` with its epilogue: partial
// sums have the accumulator's type and are added in order. Other expressions stay as they are, and so do all
// expressions for devices of work-groups. The choice "k_blocking": the number of slices.
te::Program BlockAlongK(te::Program program, const DeviceModel& device, ChoiceLog* choices);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_REWRITE_K_BLOCKING_H_
