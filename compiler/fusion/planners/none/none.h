// The planner `none`: every operator is its own kernel. What fused results are compared with.
#ifndef FUSION_COMPILER_FUSION_PLANNERS_NONE_NONE_H_
#define FUSION_COMPILER_FUSION_PLANNERS_NONE_NONE_H_

#include "compiler/fusion/plan.h"

namespace fusion {

const Planner* NonePlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_FUSION_PLANNERS_NONE_NONE_H_
