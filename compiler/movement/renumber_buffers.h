// Gives the buffers that a step names other numbers.
#ifndef FUSION_COMPILER_MOVEMENT_RENUMBER_BUFFERS_H_
#define FUSION_COMPILER_MOVEMENT_RENUMBER_BUFFERS_H_

#include <vector>

#include "compiler/movement/kernel.h"

namespace fusion::movement {

// Buffer b becomes number[b], wherever the step names it. Its shared-memory copies keep their numbers: VisitSteps
// visits them as steps.
void RenumberBuffers(const std::vector<int>& number, Step* step);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_RENUMBER_BUFFERS_H_
