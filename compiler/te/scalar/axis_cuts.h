// Conditions that cut an axis into ranges: the parts of a Concat.
#ifndef FUSION_COMPILER_TE_SCALAR_AXIS_CUTS_H_
#define FUSION_COMPILER_TE_SCALAR_AXIS_CUTS_H_

#include <functional>

#include "compiler/te/scalar/pred.h"
#include "compiler/te/scalar/scalar.h"

namespace fusion::te {

// Visits the cut `axis < at` of each condition of `s` that is such a comparison alone (CutOf).
void VisitCuts(const Scalar& s, const std::function<void(const AxisCut& cut)>& f);

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_AXIS_CUTS_H_
