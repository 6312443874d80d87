// General folds that keep the best element and where it was (the largest with its index), told from their expressions:
//
//   a0, a1 = -inf, 0  ->  select(x > a0 or NaN rule, x, a0), select(the same, k, a1)
//
// Lanes may fold parts of the axis for themselves: of what they found, the better element wins, of equal ones the first
// or the last.
#ifndef FUSION_COMPILER_MOVEMENT_EXTREME_FOLD_H_
#define FUSION_COMPILER_MOVEMENT_EXTREME_FOLD_H_

#include <optional>
#include <vector>

#include "compiler/te/program.h"

namespace fusion::movement {

struct ExtremeFold {
  te::Scalar value;  // of an element; of floats NaN is better than every number
  bool max = true;   // else the least
  bool last = false;  // of equal elements; else the first
};

// The form of a fold over one axis with lanes for its values; nullopt for every other fold.
std::optional<ExtremeFold> ExtremeFoldOf(const te::Fold& fold, const std::vector<te::Scalar>& body);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_EXTREME_FOLD_H_
