// The planner `tvm_like`: TVM's fixed patterns, which DNNFusion's evaluation calls OurB+. A baseline to stand beside.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_TVM_LIKE_H_
#define FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_TVM_LIKE_H_

#include "compiler/plan/plan.h"

namespace fusion {

const Planner* TvmLikePlanner();

}  // namespace fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_TVM_LIKE_TVM_LIKE_H_
