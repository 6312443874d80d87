// Recognises, by their expressions, general reductions that keep the best element and its position (the largest with
// its index):
//
//   a0, a1 = -inf, 0  ->  select(x > a0 or NaN rule, x, a0), select(the same, k, a1)
//
// Each lane may reduce a part of the axis: of the lanes' elements the best one wins, and of equal ones the first or the
// last.
#ifndef FUSION_COMPILER_MOVEMENT_EXTREME_REDUCTION_H_
#define FUSION_COMPILER_MOVEMENT_EXTREME_REDUCTION_H_

#include <optional>
#include <vector>

#include "compiler/te/program/program.h"

namespace fusion::movement {

struct ExtremeReduction {
  te::Scalar value;  // of an element; a float NaN is better than every number
  bool max = true;   // false: the least element is best
  bool last = false;  // of equal elements the last wins, else the first
};

// The form of a reduction over one axis whose values can be in lanes; nullopt for every other reduction.
std::optional<ExtremeReduction> ExtremeReductionOf(const te::Reduction& reduction, const std::vector<te::Scalar>& body);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_EXTREME_REDUCTION_H_
