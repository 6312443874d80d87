// How many values does straight-line code keep at once?
#ifndef FUSION_COMPILER_MOVEMENT_LIVE_VALUES_H_
#define FUSION_COMPILER_MOVEMENT_LIVE_VALUES_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// The most values that these expressions keep at once, where the operands that need most are evaluated first.
int ValuesAtOnce(const std::vector<te::Scalar>& scalars);

// The accumulators of a step: of a register tile, one for each row and vector.
int AccumulatorsOf(const Step& step);

// The most values that the step keeps at once, with its accumulators.
int ValuesAtOnce(const Step& step);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_LIVE_VALUES_H_
